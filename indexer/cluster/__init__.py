"""Ray: encoders on many machines, a writer process for each partition, and partitions as actors for queries."""
