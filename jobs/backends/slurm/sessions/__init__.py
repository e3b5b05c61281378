"""Sessions beside a replica on a node."""
