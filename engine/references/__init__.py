"""References that texts make to other works, in one form for all spellings. Reads no file and no index."""
