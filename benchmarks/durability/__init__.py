"""What holds when an index is killed or damaged, and how that is found out."""
