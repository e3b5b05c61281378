"""Isolation of jobs from the console, and of people's jobs from each other's."""

from __future__ import annotations

import contextlib
import os
from enum import StrEnum
from pathlib import Path
from typing import Final

from jobs.node import kernel

SECRET_PLACES: Final = (
    "/run/user",
    "/run/dbus",
    "/run/systemd/private",
    "/run/docker.sock",
    "/run/containerd",
    "/run/podman",
)
"""Through these, jobs that run under the console's own user could act as it outside their root."""


_INOTIFY_SHARE: Final = 4
"""A replica may have one part in so many."""


class Isolation(StrEnum):
    """Isolation between a job and everything else; best first.

    PERSONS: every person's jobs have a user id of their own, and a root file system without the
    console's home, with their own /tmp, /dev/shm, processes and IPC.
    NAMESPACES: all jobs have the console's user id, but the same root, and it is read-only but for
    their own folders; neither the console's home nor its user's own home is in it.
    NONE: jobs are processes of the console's user like any other.  Only one person may use the console.
    """

    PERSONS = "persons"
    NAMESPACES = "namespaces"
    NONE = "none"


def enter(mode: Isolation, user: int | None = None) -> None:
    """Go into the namespaces of `mode`: the next child is the first process of a PID namespace.

    Where the console is root that takes nothing else; an ordinary user needs a user namespace: the one of the
    descriptor `user`, or a new one.
    """
    flags = kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWIPC
    if user is not None:
        kernel.join(user, kernel.CLONE_NEWUSER)
    if mode is Isolation.PERSONS or user is not None:
        kernel.unshare(flags)
    else:
        unshare_user(flags)


def unshare_user(flags: int) -> None:
    """Go into new namespaces and a user namespace that owns them, in which the only user is the caller."""
    uid, gid = os.geteuid(), os.getegid()
    kernel.unshare(flags | kernel.CLONE_NEWUSER)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        Path("/proc/self", name).write_text(text, encoding="utf-8")
    _share_inotify()


def _share_inotify() -> None:
    """Leave to others what one user may have of inotify: all jobs are the console's user."""
    with contextlib.suppress(OSError, ValueError):
        most = int(Path("/proc/sys/fs/inotify/max_user_instances").read_text(encoding="utf-8"))
        own = Path("/proc/sys/user/max_inotify_instances")
        own.write_text(str(max(1, most // _INOTIFY_SHARE)), encoding="utf-8")


def hidden_paths(mode: Isolation, console: Path) -> tuple[str, ...]:
    """Return paths hidden in this mode; in a read-only root the console's user's home is one."""
    if mode is Isolation.NAMESPACES:
        return (str(console), str(Path.home()), *SECRET_PLACES)
    return (str(console),)
