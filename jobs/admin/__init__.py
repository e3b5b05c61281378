"""Django admin of jobs and what belongs to them; each module registers its own models."""

from jobs.admin import assets, clusters, jobs, log_sinks, maintenance, sessions

__all__ = ["assets", "clusters", "jobs", "log_sinks", "maintenance", "sessions"]
