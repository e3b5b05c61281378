"""What an installation is configured with, before Django is there."""
