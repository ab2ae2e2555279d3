"""How scores and ranks behave: with few vectors, with shared passages, with other samples, asked in other ways."""
