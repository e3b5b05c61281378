"""TensorBoard's event files in the work folders of jobs: found, and read on from where the last pass ended.

A work folder lies beside the logs of its run, on this machine or in the folder shared with Slurm's nodes.  It
is the job's own: it is walked and read through no symbolic link, and to limits.
"""

from __future__ import annotations

import math
import os
import stat
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import PurePosixPath
from typing import Final

from django.db import transaction
from django.db.models import QuerySet

from jobs.logs import log_store
from jobs.models import EventFile, MetricsCursor, TrainingSeries
from jobs.node import relay
from jobs.training_metrics import series
from jobs.training_metrics.event_format import BrokenFile, read_records

_LOGS: Final = "logs"
_WORK: Final = "work"
_OUTPUT: Final = ".output"
"""Names in the folder of an attempt (jobs.node.supervisor.layout), and in that of a run on Slurm."""

READ_BYTES: Final = 1 << 20
_RUNS: Final = frozenset({"train", "validation", "val", "eval", "test"})
"""Folders whose names belong to the names of their metrics, as Keras writes them."""

_BROKEN: Final = 1 << 62
"""The offset of a file that is not read again."""

_LONGEST_PATH: Final = 500
_LONGEST_PREFIX: Final = 100


def search(stream_id: int, live_path: str) -> None:
    """Look for event files in the work folder of a log's replica, and have them read.

    No query where there are none.
    """
    paths = [path for path in sorted(_walk(live_path)) if len(path) <= _LONGEST_PATH]
    if not paths:
        return
    known = {row.path: row.prefix for row in EventFile.objects.filter(stream=stream_id)}
    rows = []
    for path in [path for path in paths if path not in known][: relay.EVENT_FILES - len(known)]:
        known[path] = _prefix_of(path, known)
        rows.append(EventFile(stream_id=stream_id, path=path, prefix=known[path]))
    if rows:
        EventFile.objects.bulk_create(rows, ignore_conflicts=True)


def _prefix_of(path: str, known: dict[str, str]) -> str:
    """Return the prefix of a new file: none in the first folder, that of its folder in others."""
    folder = PurePosixPath(path).parent
    prefix = f"{folder.name}/"[-_LONGEST_PREFIX:]
    if folder.name in _RUNS:
        return prefix
    is_other = any(not used and PurePosixPath(each).parent != folder for each, used in known.items())
    return prefix if is_other and folder.name else ""


def _walk(live_path: str) -> Iterator[str]:
    """Yield the paths of event files below the work folder, those of shallow folders first."""
    folders = [PurePosixPath()]
    entries = 0
    for folder in folders:  # which grows
        for name, is_folder in _list(live_path, folder):
            entries += 1
            if entries > relay.EVENT_ENTRIES:
                return
            if is_folder:
                if len(folder.parts) < relay.EVENT_DEPTH and not name.startswith("."):
                    folders.append(folder / name)
            elif name.startswith(relay.EVENT_FILE) and name.isprintable():
                yield str(folder / name)


def _list(live_path: str, folder: PurePosixPath) -> list[tuple[str, bool]]:
    """Return the names in a folder, and whether each is a folder; nothing where it can't be read."""
    try:
        fd = _open(live_path, folder)
    except OSError:
        return []
    try:
        with os.scandir(fd) as rows:
            return [
                (row.name, row.is_dir(follow_symlinks=False)) for row in islice(rows, relay.EVENT_ENTRIES)
            ]
    except OSError:
        return []
    finally:
        os.close(fd)


def _open(live_path: str, path: PurePosixPath) -> int:
    """Open what lies in the work folder of a log's replica.  Raises OSError."""
    try:
        root, parts = log_store.locate(live_path)
    except log_store.Unsafe as error:
        raise FileNotFoundError(live_path) from error
    if parts[-2:-1] != (_LOGS,):
        raise FileNotFoundError(live_path)
    work = (*parts[:-2], _WORK, parts[-1].removesuffix(_OUTPUT))
    return log_store.open_beneath(log_store.open_folder(root), (*work, *path.parts))


def read_on(cursors: QuerySet[MetricsCursor], deadline: float = math.inf) -> bool:
    """Read what is new in the known files of these logs' replicas; return whether there is more.

    One query where nothing is new, and one look at each file.  The deadline is of the monotonic clock.
    """
    is_more = False
    rows = EventFile.objects.filter(stream__in=cursors.values("pk"), offset__lt=_BROKEN)
    for row in rows.select_related("stream__attempt"):
        if time.monotonic() > deadline:
            return True
        is_more |= _read(row)
    return is_more


def _read(row: EventFile) -> bool:
    """Read one piece of a file; return whether there is more of it."""
    try:
        fd = _open(row.stream.live_path, PurePosixPath(row.path))
    except OSError:
        return False
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size <= row.offset:
            return False
        data = os.pread(fd, READ_BYTES, row.offset)
    except OSError:
        return False
    finally:
        os.close(fd)
    try:
        samples, consumed = read_records(data)
        offset = row.offset + consumed
    except BrokenFile:
        samples, offset = [], _BROKEN
    if offset == row.offset:
        return False
    named = [each._replace(name=f"{row.prefix}{each.name}") for each in samples]
    with transaction.atomic():
        if not EventFile.objects.filter(pk=row.pk, offset=row.offset).update(offset=offset):
            return False
        if named:
            series.append(series.Origin.of_log(row.stream, TrainingSeries.Source.TENSORBOARD), named)
    return offset < status.st_size
