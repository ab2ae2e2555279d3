"""Indexes of any size, grown from a real one; what asking them costs; what larger ones would cost."""
