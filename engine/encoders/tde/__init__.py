"""TDE: sentence states concatenated with topic vectors."""
