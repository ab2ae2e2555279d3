"""Matching pairs of documents: built, scored, judged."""
