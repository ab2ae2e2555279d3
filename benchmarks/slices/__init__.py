"""Results by length, and by place in the document."""
