"""Ways into running jobs: endpoints, SSH, terminals and files."""
