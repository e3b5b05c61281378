"""Where the content of a job's trees lies on this machine, for the backend that lays it into the job.

Content in an object store is brought here first, object by object: who is killed in between goes on later.
Nobody here looks at a tree's names for anything but handing them on.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from django.conf import settings

from jobs.assets.uploads import holding, store
from jobs.models import Blob, Job
from jobs.spec import JobSpec
from jobs.trees import Supplied, places
from quotas.models import User


def supplied(job: Job) -> dict[str, Supplied]:
    """The job's trees by their ids."""
    found = {}
    for row in holding.of_job(job):
        tree = holding.load(row)
        where: dict[str, tuple[str, int]] = {}
        here: dict[str, str] = {}
        for batch in store.batches(tree.contents()):
            rows = Blob.objects.filter(sha256__in=batch)
            for sha256, name, offset in rows.values_list("sha256", "stored__name", "offset"):
                if name not in here:
                    here[name] = _path(name)
                where[sha256] = (here[name], offset)
        found[row.sha256] = Supplied(row.size, tree, where)
    return found


def promised(person: User, spec: JobSpec) -> dict[str, Supplied]:
    """What would be supplied of a job that the person has not submitted yet: how much."""
    rows = [holding.usable(person, tree) for _where, tree in places(spec)]
    return {row.sha256: Supplied(row.size) for row in rows if row is not None}


def forget_old() -> None:
    """Remove copies that no job has needed for long; the next one brings them again."""
    before = time.time() - settings.CONSOLE_CODE_DAYS * 86_400
    for path in _cache().rglob("*"):
        with suppress(OSError):
            if path.is_file() and path.stat().st_mtime < before:
                path.unlink()


def _cache() -> Path:
    return Path(settings.CONSOLE_HOME, "cache", "uploads")


def _path(name: str) -> str:
    """Where an object lies on this machine, or a copy of it."""
    try:
        return store.storage().path(name)
    except NotImplementedError:
        return str(_copy(name))


def _copy(name: str) -> Path:
    path = _cache() / name
    if path.exists():
        path.touch()
        return path
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with os.fdopen(handle, "wb") as file, store.storage().open(name) as source:
            shutil.copyfileobj(source, file, store.MIB)
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
    return path
