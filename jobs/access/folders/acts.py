"""Writing down who did what with a job's files: in the audit trail, under the job."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.contrib.contenttypes.models import ContentType

from jobs.access.folders.names import legible
from jobs.access.folders.places import Place
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
)
_AGAIN_SECONDS: Final = 600.0
_MOST_KNOWN: Final = 10_000

Known = tuple[int, int, str, str]


@dataclass(slots=True)
class _Memory:
    """Reads that were written down lately: a player that asks for a film in pieces is one reader."""

    known: OrderedDict[Known, float]

    def is_new(self, key: Known) -> bool:
        """Whether it was not written down within the last minutes."""
        now = time.monotonic()
        before = self.known.pop(key, None)
        again = before is not None and now - before < _AGAIN_SECONDS
        self.known[key] = before if before is not None and again else now
        while len(self.known) > _MOST_KNOWN:
            self.known.popitem(last=False)
        return not again


_memory: Final = _Memory(OrderedDict())


def record(user: User, place: Place, action: Action, more: Sequence[str] = ()) -> None:
    """Once; the same read of the same file from the same address only every ten minutes.

    `more` is another name, or those that were chosen.
    """
    task, path = place.task, "/".join(map(legible, (place.root, *place.names)))
    key = (user.pk, task.pk, path, origin.current().address)
    if action is Action.FILE_READ and not _memory.is_new(key):
        return
    details: dict[str, object] = {"role": task.role, "index": task.index, "path": path}
    if more:
        details["names"] = [legible(name) for name in more[:MOST_NAMED]]
        details["count"] = len(more)
    audit.log(action, place.job, details=details, actor=user, name=place.job.public_id)


def latest(job: Job) -> list[AuditEntry]:
    """What was done with the job's files, the latest first."""
    kind = ContentType.objects.get_for_model(Job)
    rows = AuditEntry.objects.filter(object_repr=job.public_id, content_type=kind, action__in=FILE_ACTIONS)
    return list(rows.order_by("-timestamp")[:MOST_SHOWN])
