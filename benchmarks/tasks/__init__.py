"""What systems are measured on: a module each, whose runs have an answer for every case."""
