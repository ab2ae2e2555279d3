"""Whether the breakdown of a score is faithful: facets, deletion and insertion, planted passages."""
