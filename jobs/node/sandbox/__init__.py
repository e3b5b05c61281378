"""What a replica sees of the machine, as processes or in a container."""
