"""The audit trail of a job's files."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from django.contrib.contenttypes.models import ContentType

from jobs.access.folders.locations import FolderLocation
from jobs.access.folders.names import legible
from jobs.models import Job
from quotas import audit
from quotas.audit import origin
from quotas.models import Action, AuditEntry, User

MOST_SHOWN: Final = 20
MOST_NAMED: Final = 100

FILE_ACTIONS: Final = (
    Action.FILE_READ,
    Action.FILE_ZIP,
    Action.FILE_UPLOAD,
    Action.FILE_FOLDER,
    Action.FILE_RENAME,
    Action.FILE_DELETE,
    Action.FILE_SAVE,
)
_AGAIN_SECONDS: Final = 600.0
_MOST_KNOWN: Final = 10_000

Known = tuple[int, int, str, str]


_recorded: Final[OrderedDict[Known, float]] = OrderedDict()
"""Reads recorded lately: a player that requests a film in pieces is one reader."""


def _is_new(key: Known) -> bool:
    """Tell whether the read was not recorded within the last minutes."""
    now = time.monotonic()
    before = _recorded.pop(key, -_AGAIN_SECONDS)
    is_new = now - before >= _AGAIN_SECONDS
    _recorded[key] = now if is_new else before
    while len(_recorded) > _MOST_KNOWN:
        _recorded.popitem(last=False)
    return is_new


def record(user: User, place: FolderLocation, action: Action, more: Sequence[str] = ()) -> None:
    """Record an action; a read of the same file from the same address at most every ten minutes.

    `more` is another name, or those that were chosen.
    """
    replica, path = place.replica, "/".join(map(legible, (place.root, *place.names)))
    key = (user.pk, replica.pk, path, origin.current().address)
    if action is Action.FILE_READ and not _is_new(key):
        return
    details: dict[str, object] = {"role": replica.role, "index": replica.index, "path": path}
    if more:
        details["names"] = [legible(name) for name in more[:MOST_NAMED]]
        details["count"] = len(more)
    audit.log(action, place.job, details=details, actor=user, name=place.job.public_id)


def list_latest(job: Job) -> list[AuditEntry]:
    """Return the latest actions on the job's files, the latest first."""
    kind = ContentType.objects.get_for_model(Job)
    rows = AuditEntry.objects.filter(object_repr=job.public_id, content_type=kind, action__in=FILE_ACTIONS)
    return list(rows.order_by("-timestamp")[:MOST_SHOWN])
