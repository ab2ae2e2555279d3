"""The computation of scores, and their breakdown into parts."""
