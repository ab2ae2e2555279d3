"""The comparisons of published papers, with the variants and results of each, repeated at a smaller scale."""
