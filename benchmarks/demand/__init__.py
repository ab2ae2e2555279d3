"""What encoding on demand costs, and what it gives."""
