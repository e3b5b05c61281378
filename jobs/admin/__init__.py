"""Django admin of jobs and what belongs to them; each module registers its own models."""

from jobs.admin import assets, clusters, faults, jobs, log_sinks, maintenance, sessions, site_storage

__all__ = ["assets", "clusters", "faults", "jobs", "log_sinks", "maintenance", "sessions", "site_storage"]
