"""How a score is made, and taken apart again."""
