"""SMITH: sentence blocks under two transformers (Yang et al. 2020)."""
