"""The demo corpus and the program that makes it; not part of the installed packages."""
