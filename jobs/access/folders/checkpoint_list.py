"""The checkpoints of a job for the Files tab: what its checkpoint folder holds, newest first.

The convention is that of `jobs.node.supervisor.checkpoints`, which chooses the one to resume from.  The
folder may hold anything, so that the number of entries and of requests is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, Final

from jobs.access.folders import file_responses, names
from jobs.access.folders.client import FolderClient, FolderRefused, OpenFile
from jobs.access.folders.locations import FolderLocation
from jobs.node.staging import mount_paths
from jobs.node.supervisor import checkpoints

MOST: Final = 50
"""Checkpoints of the list, the newest ones."""

MOST_FOLDERS: Final = 60
"""Folders that are looked into for sizes."""

MOST_FILES: Final = 1000
"""Entries of one folder whose sizes are added."""

_STEP: Final = re.compile(r"(?:step|iter(?:ation)?|checkpoint|ckpt)[-_=.]?0*(\d{1,15})(?!\d)", re.IGNORECASE)
_EPOCH: Final = re.compile(r"epoch[-_=.]?0*(\d{1,15})(?!\d)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ListedCheckpoint:
    """A checkpoint.  `size` is in bytes, None where it is not known; `is_size_partial`: at least that."""

    name: str
    is_folder: bool
    step: int | None
    epoch: int | None
    size: int | None
    is_size_partial: bool
    when: datetime | None
    is_complete: bool
    is_newest: bool
    query: str


@dataclass(frozen=True, slots=True)
class CheckpointList:
    """The newest checkpoints, how many entries there are in all, and the query of their folder."""

    rows: Sequence[ListedCheckpoint]
    total: int
    query: str


def find_root(client: FolderClient, location: FolderLocation) -> FolderLocation | None:
    """Return the checkpoint folder among the roots of a replica; None where it has none."""
    found = [
        root["name"]
        for root in client.roots
        if root["label"] == mount_paths.CHECKPOINTS or PurePosixPath(root["label"]).name == checkpoints.FOLDER
    ]
    return FolderLocation(location.job, location.replica, found[-1], ()) if found else None


def list_checkpoints(client: FolderClient, location: FolderLocation) -> CheckpointList | None:
    """Return what the checkpoint folder of the replica holds; None where it has none, or an empty one."""
    root = find_root(client, location)
    if root is None:
        return None
    try:
        page = client.look(root.path, "time", 0, MOST + 1, down=True)
    except FolderRefused:
        return None  # removed by the job itself
    if isinstance(page, OpenFile) or not page["rows"]:
        return None
    latest = _read_latest(client, root, page["rows"])
    entries = [row for row in page["rows"] if _is_checkpoint(row)]
    sizes = _FolderSizes(client)
    rows = [_describe(sizes, root, row) for row in entries[:MOST]]
    complete = [row for row in rows if row.is_complete]
    newest = next((row for row in complete if row.name == latest), complete[0] if complete else None)
    shown = [replace(row, is_newest=row is newest) for row in rows]
    return CheckpointList(shown, page["total"] - len(page["rows"]) + len(entries), root.query)


def parse_step(name: str) -> tuple[int | None, int | None]:
    """Return the step and the epoch that the name of a checkpoint tells.

    A single number without a word is a step.
    """
    step, epoch = _STEP.search(name), _EPOCH.search(name)
    if step is None and epoch is None:
        numbers = re.findall(r"\d+", PurePosixPath(name).stem)
        return (int(numbers[0]), None) if len(numbers) == 1 and len(numbers[0]) < 16 else (None, None)
    return int(step[1]) if step else None, int(epoch[1]) if epoch else None


def _is_checkpoint(row: Mapping[str, Any]) -> bool:
    return row["kind"] in {"file", "folder"} and row["name"] != checkpoints.LATEST


def _read_latest(client: FolderClient, root: FolderLocation, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the name that the entry `latest` has, as text or as a link; "" for none."""
    row = next((each for each in rows if each["name"] == checkpoints.LATEST), None)
    if row is not None and row["kind"] == "link":
        return str(row["target"])
    try:
        file = client.open_file(root.inner(checkpoints.LATEST).path)
        data = client.read(file, 0, min(file.size, 256))
        client.close_file(file)
    except FolderRefused:
        return ""
    return data.decode(errors="replace").partition("\n")[0].strip()


def _describe(sizes: _FolderSizes, root: FolderLocation, row: Mapping[str, Any]) -> ListedCheckpoint:
    name, is_folder = row["name"], row["kind"] == "folder"
    size, count, is_partial = sizes.measure(root.inner(name)) if is_folder else (row["size"], 1, False)
    step, epoch = parse_step(name)
    has_content = count != 0 if is_folder else bool(size)
    is_final = not name.startswith(".") and not name.endswith(checkpoints.UNFINISHED)
    return ListedCheckpoint(
        name=names.legible(name),
        is_folder=is_folder,
        step=step,
        epoch=epoch,
        size=size,
        is_size_partial=is_partial,
        when=file_responses.when(row["time"]),
        is_complete=is_final and has_content,
        is_newest=False,
        query=root.inner(name).query,
    )


class _FolderSizes:
    """Sizes of folders, as long as there are requests left."""

    def __init__(self, client: FolderClient) -> None:
        self._client = client
        self._left = MOST_FOLDERS

    def measure(self, location: FolderLocation) -> tuple[int | None, int | None, bool]:
        """Return the bytes in a folder, its entries, and whether it has more; None where that is unknown."""
        size, count, is_partial = 0, None, False
        waiting = [location]
        while waiting:
            if not self._left:
                is_partial = True
                break
            here = waiting.pop()
            self._left -= 1
            try:
                page = self._client.look(here.path, "name", 0, MOST_FILES, down=False)
            except FolderRefused:
                is_partial = True
                continue
            if isinstance(page, OpenFile):
                continue
            count = page["total"] if here is location else count
            size += sum(row["size"] or 0 for row in page["rows"])
            is_partial = is_partial or page["total"] > len(page["rows"])
            waiting += [here.inner(row["name"]) for row in page["rows"] if row["kind"] == "folder"]
        return (None, None, False) if count is None else (size, count, is_partial)
