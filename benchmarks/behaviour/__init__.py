"""How scores and ranks behave: with few vectors, shared passages, other samples, and other ways to search."""
