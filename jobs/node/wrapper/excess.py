"""Excessive use of the disk by replicas."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from jobs.node import disk
from jobs.node.supervisor import checkpoints
from jobs.node.supervisor.plan import Plan
from jobs.node.supervisor.replica_handle import ReplicaHandle
from jobs.states import Params, Reason, ReasonCode

LOOK_S: Final = 2.0
HURRIED_S: Final = 0.5
"""How often the disk is looked at, and while it is nearly full."""

_LEAST_PAUSE_S: Final = 10.0
_REST: Final = 20
"""A look at all folders is followed by a pause of so many times its own length."""

_LONGEST_S: Final = 2.0
"""A folder that is not counted by then is not counted."""

_GROWTH_MIB: Final = 64
"""So much may still be written into a folder while the disk is nearly full."""


class Excess:
    """Looks at the folders of an attempt's replicas."""

    def __init__(self, path: Path, plan: Plan, handles: Sequence[ReplicaHandle]) -> None:
        self._path, self._handles = path, handles
        self._keep_free, self._work_mib = plan.house.keep_free_mib, plan.house.work_mib
        self._has_bounds = self._work_mib > 0 or any(role.disk_mib for role in plan.roles)
        self._before: dict[str, int] = {}
        self._count_at = 0.0

    def look(self, now: float) -> tuple[Reason | None, float | None]:
        """Return why the attempt is to end, if it is, and when to look again, if ever."""
        if not (self._keep_free or self._has_bounds):
            return None, None
        free = disk.free_mib(self._path) if self._keep_free else 0
        if free < self._keep_free:
            return self._look_at_growth(free), now + HURRIED_S
        self._before.clear()
        reason = self._look_at_sizes(now) if self._has_bounds and now >= self._count_at else None
        return reason, now + LOOK_S

    def _look_at_growth(self, free: int) -> Reason | None:
        for one, size in self._sizes():
            if size > self._before.setdefault(one.place.name, size) + _GROWTH_MIB:
                return _too_large(one, {"free_mib": free})
        return None

    def _look_at_sizes(self, now: float) -> Reason | None:
        sizes = list(self._sizes())
        self._count_at = now + max(_LEAST_PAUSE_S, _REST * (time.monotonic() - now))
        for one, size in sizes:
            bounds = [most for most in (self._work_mib, one.place.role.disk_mib) if most]
            if bounds and size > min(bounds):
                return _too_large(one, {"most_mib": min(bounds)})
        return None

    def _sizes(self) -> Iterator[tuple[ReplicaHandle, int]]:
        """Yield running replicas and the MiB in all folders of their own, if counted in time.

        The checkpoints, which all of them write, count for the first one.
        """
        shared = [checkpoints.folder_of(self._path)]
        for one in self._handles:
            if not one.running:
                continue
            folders = [*(self._path / kind / one.place.name for kind in ("work", "tmp", "empty")), *shared]
            shared = []
            until = time.monotonic() + _LONGEST_S
            with contextlib.suppress(OSError):  # out of time, or it has gone
                yield one, sum(_bytes_below(each, until) for each in folders if each.is_dir()) >> 20


def _too_large(one: ReplicaHandle, more: Params) -> Reason:
    where: Params = {"role": one.place.role.name, "index": one.place.index}
    return Reason(ReasonCode.FOLDER_TOO_LARGE, {**where, **more})


def _bytes_below(folder: Path, until: float) -> int:
    """Bytes on the disk that the files below the folder take, as far as they can be seen."""
    total = 0
    for _, _folders, names, here in os.fwalk(folder, onerror=None):
        for name in names:
            try:
                found = os.stat(name, dir_fd=here, follow_symlinks=False)
            except OSError:  # gone meanwhile
                continue
            if stat.S_ISREG(found.st_mode):
                total += found.st_blocks * 512
        if time.monotonic() > until:
            raise TimeoutError
    return total
