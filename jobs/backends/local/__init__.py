"""The local backend: jobs as processes of this machine."""
