"""As which UNIX user something is done."""
