"""Partitions behind servers: equal answers, and failures during queries."""
