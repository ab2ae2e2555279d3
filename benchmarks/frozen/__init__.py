"""Layers that make the vector of a document from the vectors of its chunks: trained on corpora, measured on another."""
