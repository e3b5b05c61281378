"""Many jobs of one file with other values: what they are, how they are accepted, and what is done to all."""
