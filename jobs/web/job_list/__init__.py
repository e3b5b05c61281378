"""The list of jobs: its page, columns, saved views, and actions on several jobs."""
