"""How fast long documents are encoded and indexed, beside sentence-transformers and the limit of the machine."""
