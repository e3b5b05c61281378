"""Health, metrics, probes, logging and the disk."""
