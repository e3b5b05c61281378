"""Programs that run beside a replica, with Python's standard library alone."""
