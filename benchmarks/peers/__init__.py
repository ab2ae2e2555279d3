"""Other programs, driven through their public interfaces as their documentation recommends."""
