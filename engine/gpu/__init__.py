"""FAISS indexes and matrix products on GPUs."""
