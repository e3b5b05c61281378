"""Ray clusters: jobs by the Jobs API, and placement groups for their replicas."""
