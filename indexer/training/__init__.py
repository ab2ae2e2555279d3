"""`train`: from corpora to an encoder in a folder, with its card."""
