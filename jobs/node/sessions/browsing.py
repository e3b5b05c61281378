"""Which folders of a replica may be browsed: in its own view while it lives, and what is left of it after.

After its end there is no view any more: the console opens what it kept, and the job's outputs on this
machine, hands the descriptors to a process of the job's user, and that reads and changes nothing.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from jobs.node.files import Folder
from jobs.node.sandbox import bind_mounts
from jobs.node.sandbox.folder_access import open_left, rights_of
from jobs.node.sandbox.folders import parts_of
from jobs.node.sandbox.isolation import Isolation
from jobs.node.sandbox.running_replica import ReplicaUnavailable
from jobs.node.sftp.paths import BrowsableFolders, BrowsableRoot
from jobs.node.staging import mount_paths
from jobs.node.staging.mount_specs import MountKind, MountSpec
from jobs.node.supervisor import layout
from jobs.node.supervisor.plan import Plan
from jobs.node.wrapper.launch_arguments import LaunchArguments

WORK: Final = "work"
_OPENED: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW
_OUTPUTS: Final = frozenset({MountKind.OUTPUT, MountKind.STORE})


def live(launch: LaunchArguments) -> BrowsableFolders:
    """The working folder and every place that the job may write to, as the running replica sees them."""
    work = launch.room().work
    roots = [BrowsableRoot(WORK, mount_paths.WORK, base=work)]
    for index, bound in _writable(launch.plan):
        if bound.kind is MountKind.INNER:
            below = parts_of(bound.path.removeprefix(mount_paths.WORK))
            roots.append(BrowsableRoot(_name(index), bound.path, base=work, parts=below))
        else:
            roots.append(BrowsableRoot(_name(index), bound.path, base="/", parts=parts_of(bound.path)))
    return BrowsableFolders(tuple(roots), live=True)


def find_ended(path: Path, role: str, index: int) -> tuple[BrowsableFolders, tuple[int, int] | None]:
    """What is left of an ended replica of the attempt at `path`, and whose it is.

    Raises Shut: `not_running` while it has not begun, `gone` when nothing is left.
    """
    launch = _read_ended(path, role, index)
    try:
        roots = [BrowsableRoot(WORK, mount_paths.WORK, os.open(launch.file("work"), _OPENED))]
    except OSError as error:
        raise ReplicaUnavailable("gone") from error
    for number, bound in _writable(launch.plan):
        with contextlib.suppress(OSError):  # it never came into being
            roots.append(BrowsableRoot(_name(number), bound.path, _open(launch, bound, number)))
    owns = launch.contained or Isolation(launch.plan.house.isolation) is not Isolation.NONE
    return BrowsableFolders(tuple(roots)), launch.owner if owns else None


def _read_ended(path: Path, role: str, index: int) -> LaunchArguments:
    try:
        folder = Folder.open(path)
    except FileNotFoundError as error:
        raise ReplicaUnavailable("gone") from error
    with folder:
        found = folder.read(layout.PLAN)
        if found is None:
            raise ReplicaUnavailable("not_running")
        plan = Plan.load(found)
        place = next((one for one in plan.replicas() if (one.role.name, one.index) == (role, index)), None)
        over = place is not None and (
            folder.exists(layout.END) or folder.exists(f"replicas/{place.name}/{layout.EXIT}")
        )
        if place is None or not over:
            raise ReplicaUnavailable("not_running")
        return LaunchArguments(plan, place, path, folder, {}, {}, -1)


def _writable(plan: Plan) -> Iterator[tuple[int, MountSpec]]:
    return ((number, bound) for number, bound in enumerate(plan.bounds) if not bound.read_only)


def _open(launch: LaunchArguments, bound: MountSpec, number: int) -> int:
    """OSError for what is not left, or was only lent to the job."""
    if bound.on_this_machine:
        if bound.kind not in _OUTPUTS:
            raise FileNotFoundError(bound.path)
        return open_left(bound, launch.owner)
    if bound.kind is MountKind.INNER:
        work = os.open(launch.file("work"), _OPENED)  # which lies where the job's user never gets by its path
        with rights_of(launch.owner):
            return _below(work, bound)
    return os.open(bind_mounts.own_folder(launch, number), _OPENED)


def _below(fd: int, bound: MountSpec) -> int:
    """From the working folder, which the job could do with as it liked, through no link."""
    for name in parts_of(bound.path.removeprefix(mount_paths.WORK)):
        try:
            inner = os.open(name, _OPENED, dir_fd=fd)
        finally:
            os.close(fd)
        fd = inner
    return fd


def _name(number: int) -> str:
    return f"mount-{number}"
