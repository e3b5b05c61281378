"""Logs of jobs: the log store, search, masked secrets, and logs of external jobs."""
