"""Indexes of any size, grown from a real one, and the cost of searching them."""
