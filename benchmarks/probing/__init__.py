"""What a linear classifier learns from frozen vectors."""
