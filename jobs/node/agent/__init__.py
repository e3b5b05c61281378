"""The agent of a cluster on this machine: one process that looks after all of its attempts."""
