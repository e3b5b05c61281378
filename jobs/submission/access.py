"""Fetching a job, and asking whether this person may do that with it: one step that no view can forget."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.utils.translation import gettext as _

from jobs.models import Job
from jobs.submission import templates
from quotas import audit
from quotas.access import Verb, can
from quotas.models import User


def find_job(user: User, public_id: str, verb: Verb = Verb.READ) -> Job:
    """The job, with its owner and place.

    Http404 when the person may not even know of it, PermissionDenied when they may not do `verb`.
    """
    rows = Job.objects.visible_to(user).select_related("owner", "workspace", "cluster", "quota")
    job = rows.filter(public_id=public_id).first()
    if job is None:
        audit.denied(public_id, actor=user, details={"verb": verb})  # whether or not there is such a job
        raise Http404
    if verb is not Verb.LIST and not can(user, verb, job):  # whatever is visible may be listed
        audit.denied(job.public_id, thing=job, actor=user, details={"verb": verb})
        raise PermissionDenied(refusal(verb, job))
    return job


def find_template(user: User, public_id: str, version: str = "") -> templates.Chosen:
    """Return that version of the template, or the default one; Http404 when the person sees none."""
    found = templates.find(user, f"{public_id}@{version}" if version else public_id)
    if found is None:
        raise Http404
    return found


def refusal(verb: Verb, job: Job) -> str:
    """Why not, and who can help."""
    if verb is Verb.READ:
        return _(
            "Only %(owner)s and the admins of %(workspace)s see this job's file, logs and events, "
            "unless it is shared with the workspace."
        ) % {"owner": job.owner.get_username(), "workspace": job.workspace.name}
    return _("Only %(owner)s and the admins of %(workspace)s may do this with the job.") % {
        "owner": job.owner.get_username(),
        "workspace": job.workspace.name,
    }
