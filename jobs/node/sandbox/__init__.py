"""File system and isolation of a replica, as processes or in a container."""
