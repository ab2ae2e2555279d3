"""Results for people: a table for the terminal, a page for the notebook, reports and charts as files."""
