"""Template tags and filters of jobs."""
