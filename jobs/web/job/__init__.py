"""The page of a job, its tabs and its buttons."""
