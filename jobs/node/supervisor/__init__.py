"""The supervisor of an attempt: starts, watches and ends its replicas."""
