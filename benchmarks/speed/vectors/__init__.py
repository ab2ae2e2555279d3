"""Nearest neighbours of vectors alone: collections, indexes of several libraries, what they find and cost."""
