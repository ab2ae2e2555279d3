"""Programs that measure longmatch and write what they measured as records; nothing here is needed to search."""
