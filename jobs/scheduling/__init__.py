"""What workers do with jobs: admit, send, look, retry, end, tidy."""
