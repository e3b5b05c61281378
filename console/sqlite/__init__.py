"""SQLite, with writers waiting for each other rather than for the file."""
