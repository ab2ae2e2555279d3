"""What holds when an index is killed or damaged, when files are broken, and whether scores are exact."""
