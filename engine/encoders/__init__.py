"""Text to vectors: the interface, the backbone, and the encoders over it."""
