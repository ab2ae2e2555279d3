"""From paths to committed documents: corpus, ids, pipeline."""
