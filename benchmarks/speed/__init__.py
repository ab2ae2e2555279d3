"""Time, memory and disk: of encoding, vectors alone, growing indexes, plans, servers and approximate lists."""
