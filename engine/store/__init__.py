"""The index on disk: catalog, shards, FAISS generations."""
