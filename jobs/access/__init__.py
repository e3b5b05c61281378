"""Access to running jobs: endpoints, SSH, terminals and files."""
