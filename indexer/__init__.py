"""Everything that writes an index, and that trains an encoder."""
