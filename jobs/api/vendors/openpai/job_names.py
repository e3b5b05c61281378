"""Names of jobs: `user~name`, or a user and a name, and the job that they mean."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import Http404

from jobs.api.vendors.openpai import errors
from jobs.api.vendors.operations import Call
from jobs.models import Job
from quotas.access import Verb


def name_of(job: Job) -> str:
    """Return the name by which OpenPAI knows a job; its owner has to be at hand."""
    return f"{job.owner.get_username()}~{job.name}"


def requested_name(call: Call) -> str:
    """Return the name of the job that a request is about, as `user~name`.

    A name without a user is the caller's own.
    """
    name = str(call.values["job"])
    if owner := call.values.get("username"):
        return f"{owner}~{name}"
    return name if "~" in name else f"{call.person.get_username()}~{name}"


def find_job(call: Call, verb: Verb, action: str = "") -> Job:
    """Return the job that a request is about, the newest of that name, for `verb`.

    `action` is what is refused, in the words of OpenPAI's sentence.  Raises VendorError, MissingScopeError.
    """
    name = requested_name(call)
    owner, _tilde, own_name = name.partition("~")
    rows = Job.objects.visible_to(call.person).filter(owner__username=owner, name=own_name)
    public_id = rows.order_by("-pk").values_list("public_id", flat=True).first()
    try:
        return call.find_job(public_id or "", verb)
    except Http404:
        raise errors.no_job(name) from None
    except PermissionDenied:
        if not action:
            raise
        raise errors.forbidden(call.person, f"{action} job {name}") from None


def may_read(call: Call, job: Job, verbs: frozenset[Verb]) -> bool:
    """Tell whether the caller, with `verbs` as rights, may read more of the job than that there is one."""
    return Verb.READ in verbs and call.has_scope_to_read(job)
