"""Pairs of overlapping documents inside an index."""
