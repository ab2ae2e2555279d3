"""CL-SciSumm: summaries against papers, citing papers and citances."""
