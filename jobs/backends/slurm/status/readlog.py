"""A replica's output, read where it lies."""

from __future__ import annotations

import os
from pathlib import Path

from jobs.backends.base import LogSlice, LogState, TaskRef
from jobs.backends.slurm.script import layout
from jobs.backends.slurm.status import evidence


def read(root: Path, folder: Path, task: TaskRef, cursor: str, limit: int) -> LogSlice:
    """At most `limit` bytes from `cursor`, which is the number of bytes before it."""
    offset = int(cursor or "0")
    kept = evidence.kept(folder)
    replicas = kept.replicas() if kept else iter(())
    name = next(
        (name for role, index, name in replicas if (role.name, index) == (task.role, task.index)), None
    )
    if name is None:
        return LogSlice(b"", cursor, LogState.GONE)
    run = folder / layout.run_folder(task.run)
    over = layout.text(run / "ends" / name) is not None
    parts = (*(run / "logs").relative_to(root).parts, f"{name}.output")
    with layout.opened(root, parts) as file:
        size = os.fstat(file).st_size if file is not None else 0
        data = os.pread(file, limit, offset) if file is not None else b""
    if offset > size:
        return LogSlice(b"", str(size), LogState.TRUNCATED)
    end = offset + len(data)
    return LogSlice(data, str(end), LogState.COMPLETE if over and end >= size else LogState.OPEN)
