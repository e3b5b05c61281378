"""Coverage-guided search for texts that a dialect does not get along with, and what it has found."""
