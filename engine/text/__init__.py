"""Documents as values: text, spans, sections and their kinds. Reads no file and draws nothing."""
