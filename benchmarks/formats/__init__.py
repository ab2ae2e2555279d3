"""Files of public datasets and of TREC, read and written; damaged files raise a `FormatError` that names the line."""
