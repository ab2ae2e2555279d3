"""What lies on disk: catalog, shards, FAISS generations."""
