"""Ids of jobs and pods as PAI-DLC writes them: `dlc<id>`, `dlc<id>-<role>-<n>`, a UUID for each pod's run."""

from __future__ import annotations

import re
import uuid
from typing import Final

from django.db.models import QuerySet
from django.http import Http404

from jobs.access.sessions import safe_role
from jobs.api.vendors.operations import Call
from jobs.models import Job, Replica
from quotas.access import Verb

PREFIX: Final = "dlc"

_POD: Final = re.compile(r"[a-z0-9-]+-(?P<index>[0-9]{1,6})")
_UIDS: Final = uuid.UUID("5b1a6f5e-2a43-5f0c-9d5c-6f0f0e0d1c7b")
"""The namespace of PodUids."""


def job_id(job: Job) -> str:
    """Return the JobId of a job."""
    return f"{PREFIX}{job.public_id}"


def public_id(text: str) -> str:
    """Return the id of the job that a JobId names, or "" for anything that is no JobId."""
    return text.removeprefix(PREFIX) if text.startswith(PREFIX) else ""


def find_job(call: Call, text: str, verb: Verb) -> Job:
    """Return the job that a JobId names.  Raises Http404, PermissionDenied or MissingScopeError."""
    return call.find_job(public_id(text), verb)


def pod_id(job: Job, replica: Replica) -> str:
    """Return the PodId of a replica; it is the same in every attempt and run."""
    return f"{job_id(job)}-{safe_role(replica.role)}-{replica.index}"


def pod_uid(job: Job, replica: Replica) -> str:
    """Return the PodUid of a replica, of this attempt and run alone; its attempt has to be loaded."""
    name = f"{job.public_id}/{replica.attempt.number}/{replica.run}/{replica.role}/{replica.index}"
    return str(uuid.uuid5(_UIDS, name))


def newest_first(job: Job) -> QuerySet[Replica]:
    """Return the replicas of all attempts and runs with their attempts, the newest run first."""
    rows = Replica.objects.filter(attempt__job=job).select_related("attempt")
    return rows.order_by("-attempt__number", "-run", "ordinal")


def find_replica(call: Call, job: Job, text: str) -> Replica:
    """Return the replica that a PodId names: in the run of the parameter PodUid, else in the newest one.

    Of roles that are written the same in a PodId, the first.  Raises Http404.
    """
    match = _POD.fullmatch(text)
    if match is None:
        raise Http404
    uid = str(call.values.get("PodUid") or "").lower()
    for replica in newest_first(job).filter(index=int(match["index"])):
        if pod_id(job, replica) == text and uid in ("", pod_uid(job, replica)):
            return replica
    raise Http404
