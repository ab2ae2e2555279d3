"""Whether a breakdown tells the truth: facets, deletion and insertion, planted passages."""
