"""Access checks of jobs: fetch a job for a person, or require a right."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.utils.translation import gettext as _

from jobs.models import Job
from quotas import audit
from quotas.access import Owned, Verb, administers, can, role_in
from quotas.models import Role, User


class Forbidden(Exception):
    """The person may not do this."""


def require(user: User, verb: Verb, thing: Owned) -> None:
    """Raise Forbidden unless the person may do `verb` with a job or a sweep."""
    if not can(user, verb, thing):
        raise Forbidden


def require_admin(user: User) -> None:
    """Raise Forbidden unless the person is an admin of the console."""
    if not administers(user):
        raise Forbidden


def require_queue_admin(user: User, job: Job) -> None:
    """Raise Forbidden unless the person is an admin of the job's workspace, or of the console."""
    if role_in(user, job.workspace_id) is not Role.ADMIN:
        raise Forbidden


def find_job(user: User, public_id: str, verb: Verb = Verb.READ) -> Job:
    """Return the job, with its owner, workspace, cluster and quota.

    Raises Http404 when the person may not even know of it, PermissionDenied when they may not do `verb`.
    """
    rows = Job.objects.visible_to(user).select_related("owner", "workspace", "cluster", "quota")
    job = rows.filter(public_id=public_id).first()
    if job is None:
        audit.log_refusal(public_id, actor=user, details={"verb": verb})  # whether or not there is such a job
        raise Http404
    if verb is not Verb.LIST and not can(user, verb, job):  # whatever is visible may be listed
        audit.log_refusal(job.public_id, thing=job, actor=user, details={"verb": verb})
        raise PermissionDenied(refusal(verb, job))
    return job


def refusal(verb: Verb, job: Job) -> str:
    """Return the sentence for a refused `verb`, which names those who may."""
    text = _("Only %(owner)s and the admins of %(workspace)s can do this.")
    if verb is Verb.READ:
        text = _(
            "Only %(owner)s and the admins of %(workspace)s can see this job's file, logs and "
            "events, unless the job is shared with the workspace."
        )
    return text % {"owner": job.owner.get_username(), "workspace": job.workspace.title}
