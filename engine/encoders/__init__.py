"""Text to vectors: the interface, the backbone, and the encoders built on it."""
