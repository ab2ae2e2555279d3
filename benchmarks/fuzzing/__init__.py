"""Damaged files for the readers."""
