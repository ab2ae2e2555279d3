"""How a task is run: the loop, checkpoints, validation, history and model card."""
