"""The user and group files of a job: the machine's own, and the person in them by name.

A user id that has no name makes ssh, `whoami` and many a library give up.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from jobs.node.sandbox import view
from jobs.node.sandbox.isolation import Isolation
from jobs.node.supervisor import layout
from jobs.node.supervisor.plan import Plan

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]")


def write(plan: Plan, folder: Path) -> None:
    """Write both files into the attempt's folder, where people have user ids of their own."""
    if plan.house.isolation != Isolation.PERSONS:
        return
    name = _UNSAFE.sub("-", plan.user)
    line = f"{name}:x:{plan.uid}:{plan.gid}::{view.WORK}:/bin/bash\n"
    _write(folder / layout.PASSWD, Path("/etc/passwd"), name, line)
    _write(folder / layout.GROUP, Path("/etc/group"), name, f"{name}:x:{plan.gid}:\n")


def _write(target: Path, model: Path, name: str, line: str) -> None:
    """The model's lines but for one of the same name, which would be believed first."""
    lines = model.read_text(encoding="utf-8").splitlines(keepends=True)
    target.write_text(
        "".join([kept for kept in lines if not kept.startswith(f"{name}:")]) + line, encoding="utf-8"
    )
    target.chmod(0o644)
