"""An index in a PostgreSQL database with pgvector: one schema of tables, no file."""
