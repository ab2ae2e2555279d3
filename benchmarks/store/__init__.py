"""Promises of the store: exact scores, readers beside a writer, checksums of rows, and damaged input files."""
