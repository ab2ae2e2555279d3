"""Nearest neighbours of vectors alone: collections, indexes of several libraries, their recall and cost."""
