"""Clients of an index over HTTP, valid and hostile ones, and what became of their requests."""
