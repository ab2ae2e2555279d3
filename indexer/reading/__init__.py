"""Reading of documents in a process with limits."""
