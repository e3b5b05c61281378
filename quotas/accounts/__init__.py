"""People, service accounts, workspaces and their sign-ins."""
