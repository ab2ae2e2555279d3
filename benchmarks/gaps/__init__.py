"""Attempts at chunk vectors that find what words miss."""
