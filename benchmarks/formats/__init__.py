"""Files of public datasets and of TREC, read and written."""
