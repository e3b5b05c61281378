"""Short-lived credentials of a running job's role (`jobs.models.RamRole`)."""
