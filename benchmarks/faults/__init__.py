"""Faults of process, system and disk, injected into small indexes, thousands of times."""
