"""What an encoder learns from: tasks, their pairs and views, and their losses."""
