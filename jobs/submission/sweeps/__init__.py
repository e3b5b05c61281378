"""Parameter sweeps: many jobs of one file with different values, submitted and controlled as a group."""
