"""What people try first: the tries, how they are run, and what is recorded of them."""
