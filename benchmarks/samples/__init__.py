"""How many documents a reference needs, in a corpus of one kind and in a mixed one."""
