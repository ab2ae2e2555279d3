"""Ray: encoders on many machines, and partitions as actors for queries."""
