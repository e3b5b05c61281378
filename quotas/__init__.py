"""Access rights, clusters, quotas, admission and billing."""
