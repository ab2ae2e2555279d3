"""Training tasks of encoders, with their pairs, views and losses."""
