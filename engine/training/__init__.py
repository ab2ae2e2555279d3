"""Training of encoders: objectives, samplers, tasks, the trainer. Nothing else in `engine` imports it."""
