"""Django admin of jobs and what belongs to them; each module registers its own models."""

from jobs.admin import assets, clusters, jobs, maintenance, sessions

__all__ = ["assets", "clusters", "jobs", "maintenance", "sessions"]
