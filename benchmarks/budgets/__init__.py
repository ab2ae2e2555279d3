"""Whether what is told before a run comes true: `python -m benchmarks study plans`."""
