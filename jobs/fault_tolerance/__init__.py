"""Fault tolerance: the policy of a job, what its ends mean, and what is done about them.

`policy` reads the vendors' arguments, `error_catalogue` tells what a line of output means, and `decisions` is
the one table that says when a job is restarted.
"""
