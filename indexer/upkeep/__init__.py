"""Checks and repairs of an index."""
