"""Django admin of jobs and what belongs to them; each module registers its own models."""

from jobs.admin import (
    assets,
    clusters,
    faults,
    holders,
    jobs,
    log_sinks,
    maintenance,
    nodes,
    sessions,
    site_storage,
)

__all__ = [
    "assets",
    "clusters",
    "faults",
    "holders",
    "jobs",
    "log_sinks",
    "maintenance",
    "nodes",
    "sessions",
    "site_storage",
]
