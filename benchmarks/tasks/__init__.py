"""The tasks that systems are measured on, one module each; a run has a result for every case."""
