"""Building, submitting and following jobs."""
