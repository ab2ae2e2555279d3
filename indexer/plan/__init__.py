"""The plan of a run before it starts: time, memory and disk from a sample."""
