"""Words: from texts to terms, counts, statistics, and how well a document accounts for the terms of a query."""
