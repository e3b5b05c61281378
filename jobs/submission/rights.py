"""Who may do what to a job: asked before anything is done."""

from __future__ import annotations

from jobs.models import Job
from quotas.access import Verb, administers, can
from quotas.models import User


class Forbidden(Exception):
    """The person may not do this."""


def require(user: User, verb: Verb, job: Job) -> None:
    """Raises Forbidden."""
    if not can(user, verb, job):
        raise Forbidden


def require_admin(user: User) -> None:
    """For what only the console's admins may do.  Raises Forbidden."""
    if not administers(user):
        raise Forbidden
