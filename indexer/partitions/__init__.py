"""Indexes of several partitions: splitting, joining, writing."""
