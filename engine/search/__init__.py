"""From a query document to ranked hits with their breakdown, over one snapshot of an index."""
