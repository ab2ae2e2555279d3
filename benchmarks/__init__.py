"""Programs that measure longmatch and write records; nothing here is needed to search."""
