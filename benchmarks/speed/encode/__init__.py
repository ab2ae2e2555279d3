"""How fast long documents are encoded and indexed, compared with sentence-transformers and the limit of the machine."""
