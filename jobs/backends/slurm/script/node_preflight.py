"""Node preflight: a task on each free node checks what jobs need there."""

from __future__ import annotations

import os
import pwd
import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from jobs.backends.base import CheckReport, Unreachable
from jobs.backends.slurm.client.programs import CompletedProgram, Programs
from jobs.backends.slurm.config import SlurmConfig
from jobs.node import relay

MAX_NODES: Final = 64
"""So many nodes are checked at a time."""

WAIT_S: Final = 10
"""A node that is not free so soon is not checked."""

PATIENCE_S: Final = 60

SHARED_CHECK: Final = Path(__file__).with_name("node_preflight.sh").read_text(encoding="utf-8")
RELAYED_CHECK: Final = Path(__file__).with_name("node_preflight_relayed.sh").read_text(encoding="utf-8")
"""For nodes that share no folder with the console."""

MEANS: Final = {
    "unseen": "The folder {root} is not shared: what the console puts there can't be seen on {nodes}. "
    "Mount it there under the same name.",
    "locked": "Jobs may not write into {root} on {nodes}: give it to the user {user} there, or export it so.",
    "stranger": "The user {user} is unknown on {nodes}, or has another number there: make it with number "
    "{uid}.",
    "closed": "Jobs may not write into {nodes_folder} on {nodes}, or it is not there: make it, or name "
    "another as `nodes_folder`.",
    "without": "There is no {python} of version 3.11 or newer on {nodes}, which carries files to the "
    "console: install one, or name it as `python`.",
    "unreached": "The console can't be reached at {console_url} from {nodes}: let them through, name another "
    "address as `console_url`, and where it begins with https let the nodes trust its certificate.",
}
"""A word that the task prints → its meaning."""

OLD: Final = (
    "There is no {python} of version 3.11 or newer on {nodes}: jobs run there, but terminals, SSH and files "
    "don't. Install one, or name it as `python`."
)


def check_nodes(config: SlurmConfig, count: int) -> CheckReport:
    """Check `count` nodes, or one where so many are not free.  Raises Unreachable for none."""
    mark = config.root / f".tried-{secrets.token_hex(8)}"
    person = pwd.getpwuid(os.geteuid())
    user = config.login.user if config.login else person.pw_name
    mark.touch(mode=0o600)
    try:
        where = [f"--{name}={value}" for name in ("partition", "account") if (value := getattr(config, name))]
        command = ["/bin/sh", "-c", SHARED_CHECK, "sh", str(mark), user, config.python]
        if config.apart:
            program = Path(relay.__file__).read_text(encoding="utf-8")
            command[2:] = [
                RELAYED_CHECK,
                "sh",
                config.nodes_folder,
                user,
                config.python,
                program,
                config.console_url,
            ]
        done = _run_check(config, min(count, MAX_NODES), [*where, *_TASK, *command])
    finally:
        mark.unlink()
    words = [line.split(" ", 1) for line in done.out.splitlines() if " " in line]
    nodes = {word: sorted(node for each, node in words if each == word) for word in ("tried", *MEANS, "old")}
    lacking = [
        MEANS[word].format(
            root=config.root,
            user=user,
            uid=person.pw_uid,
            nodes=_join(nodes[word]),
            nodes_folder=config.nodes_folder,
            python=config.python,
            console_url=config.console_url,
        )
        for word in MEANS
        if nodes[word]
    ]
    if done.code:
        lacking.append(f"On some nodes nothing could be run. srun says: {_last(done)}")
    old = OLD.format(python=config.python, nodes=_join(nodes["old"])) if nodes["old"] else ""
    return CheckReport(tuple(nodes["tried"]), tuple(lacking), tuple(filter(None, [old])))


_TASK: Final = (
    "--ntasks-per-node=1",
    "--mem=1",
    "--time=1",
    f"--immediate={WAIT_S}",
    "--chdir=/",
    "--mpi=none",
    "--job-name=job-console-look",
    "--export=PATH",
)


def _run_check(config: SlurmConfig, count: int, arguments: Sequence[str]) -> CompletedProgram:
    programs = Programs(replace(config, timeout_s=PATIENCE_S))
    done = programs.srun(f"--nodes={max(1, count)}", *arguments)
    if not _has_tried(done):
        done = programs.srun("--nodes=1", *arguments)
    if not _has_tried(done):
        raise Unreachable(f"No node could be tried. srun says: {_last(done)}")
    return done


def _has_tried(done: CompletedProgram) -> bool:
    return any(line.startswith("tried ") for line in done.out.splitlines())


def _last(done: CompletedProgram) -> str:
    """Return its last error: the ones before tell its progress."""
    lines = [line.split("error: ", 1)[1].strip() for line in done.err.splitlines() if "error: " in line]
    return lines[-1] if lines else done.complaint


def _join(names: Sequence[str]) -> str:
    more = [f"and {len(names) - 10} more"] if len(names) > 10 else []
    return ", ".join([*names[:10], *more])
