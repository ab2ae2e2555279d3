"""FAISS generations: choice of type, building, extension, compaction, reference, recall."""
