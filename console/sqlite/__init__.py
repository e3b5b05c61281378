"""SQLite, with the writers of one process waiting for each other rather than for the file."""
