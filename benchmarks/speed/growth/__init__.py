"""Indexes of any size, grown from a real one, and what searching them costs."""
