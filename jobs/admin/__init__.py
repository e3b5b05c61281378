"""Django admin of jobs and what belongs to them: each module registers its own."""

from jobs.admin import assets, entering, jobs, kept, logs, maintenance

__all__ = ["assets", "entering", "jobs", "kept", "logs", "maintenance"]
