"""Files that all replicas of an attempt share, written by the supervisor before it starts them.

The user and group files name the person: a user id without a name makes ssh, `whoami` and libraries fail.
The command `python` is for machines that have only `python3`; its folder is the last one on a job's PATH, so
that every other `python` comes before it: the machine's, and that of an environment.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from jobs.node.network import names
from jobs.node.sandbox.isolation import Isolation
from jobs.node.sandbox.root_file_system import BindMount
from jobs.node.staging import git, mount_paths
from jobs.node.supervisor import layout
from jobs.node.supervisor.plan import Plan
from jobs.node.wrapper import environment

FOLDER: Final = f"{mount_paths.CONSOLE_FOLDER}/{layout.BIN}"
"""Where a replica with a root file system of its own finds `python`."""

_SCRIPT: Final = '#!/bin/sh\nexec python3 "$@"\n'
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]")


def write(plan: Plan, attempt: Path) -> None:
    """Write all of them into the attempt's folder."""
    if plan.house.isolation == Isolation.PERSONS:
        name = _UNSAFE.sub("-", plan.user)
        user = f"{name}:x:{plan.uid}:{plan.gid}::{mount_paths.WORK}:/bin/bash\n"
        for file, line in ((layout.PASSWD, user), (layout.GROUP, f"{name}:x:{plan.gid}:\n")):
            known = Path("/etc", file).read_text(encoding="utf-8").splitlines(keepends=True)
            kept = [
                other for other in known if not other.startswith(f"{name}:")
            ]  # it would be believed first
            _write(attempt / file, "".join([*kept, line]))
    folder = attempt / layout.BIN
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    _write(folder / "python", _SCRIPT, 0o755)
    if any(code.git for code in plan.codes):
        _write(attempt / git.CONFIG, git.CONFIG_TEXT)
    if plan.network is not None:
        _write(attempt / layout.HOSTS, names.hosts_text(plan))
        _write(attempt / layout.RESOLVER, names.resolver_text())
    if rest := environment.split_by_size(environment.peers(plan))[1]:
        _write(attempt / layout.PEERS, environment.as_shell(rest))


def mounts(attempt: Path) -> list[BindMount]:
    """Open the folder with `python` for a root file system; nothing for an earlier release's attempt."""
    folder = attempt / layout.BIN
    if not folder.exists():
        return []
    fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
    return [BindMount(FOLDER, fd, read_only=True, anywhere=True)]


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file, unless it is there: replicas that run may be reading it."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
