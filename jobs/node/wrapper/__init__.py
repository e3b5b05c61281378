"""The wrapper of a replica: its limits, its log, its command and its end."""
