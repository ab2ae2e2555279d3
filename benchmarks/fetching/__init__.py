"""Rebuilds the four corpora of the benchmarks from their public sources: download, conversion, masking, checks."""
