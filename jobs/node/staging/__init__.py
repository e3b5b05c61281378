"""Code, packages and data on their way into a replica, and back."""
