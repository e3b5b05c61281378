"""The content of a job's trees on this machine, for the backend that puts it into the job.

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

from jobs.assets.uploads import store, uploaded_trees
from jobs.models import Blob, Job
from jobs.spec import JobSpec
from jobs.trees import Supplied, find_trees
from quotas.models import User


def supply_trees(job: Job) -> dict[str, Supplied]:
    """The job's trees by their ids."""
    found = {}
    for row in uploaded_trees.of_job(job):
        tree = uploaded_trees.load(row)
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


def describe_trees(person: User, spec: JobSpec) -> dict[str, Supplied]:
    """Describe the trees of a job that the person has not submitted yet, by their sizes."""
    rows = [uploaded_trees.usable(person, tree) for _where, tree in find_trees(spec)]
    return {row.sha256: Supplied(row.size) for row in rows if row is not None}


def remove_old() -> None:
    """Remove copies that no job has needed for long; the next one brings them again."""
    before = time.time() - settings.CONSOLE_CODE_DAYS * 86_400
    for path in _cache().rglob("*"):
        with suppress(OSError):
            if path.is_file() and path.stat().st_mtime < before:
                path.unlink()


def _cache() -> Path:
    return Path(settings.CONSOLE_HOME, "cache", "uploads")


def _path(name: str) -> str:
    """Return the path of an object on this machine, or of a copy."""
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
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with os.fdopen(handle, "wb") as file, store.storage().open(name) as source:
            shutil.copyfileobj(source, file, store.MIB)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    return path
