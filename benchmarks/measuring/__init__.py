"""Time, memory, threads and processes of a measurement."""
