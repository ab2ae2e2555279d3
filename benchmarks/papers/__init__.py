"""The papers' own comparisons: what each of them varied, and found, made again at our size."""
