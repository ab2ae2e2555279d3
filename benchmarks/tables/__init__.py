"""Tables: queries over runs, drawn by one pivot; nothing is measured here."""
