"""Resources, programs and isolation of this machine."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jobs.backends.base import Gpu
from jobs.backends.local import gpus
from jobs.backends.local.launch import RUNNER
from jobs.node.sandbox import isolation
from jobs.node.sandbox.isolation import Isolation


@dataclass(frozen=True, slots=True)
class Total:
    """Everything that jobs may share out among themselves."""

    cpu_milli: int
    memory_mib: int
    gpus: tuple[Gpu, ...]


def total(cpu_milli: int | None, memory_mib: int | None, types: Mapping[str, int] | None) -> Total:
    """Return the resources as configured, and for the rest as found."""
    return Total(
        cpu_milli or len(os.sched_getaffinity(0)) * 1000,
        memory_mib or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
        _find_gpus() if types is None else gpus.from_counts(types),
    )


def most_processes() -> int:
    """Return how many processes the kernel has numbers for."""
    return int(Path("/proc/sys/kernel/pid_max").read_text(encoding="utf-8"))


@cache
def _find_gpus() -> tuple[Gpu, ...]:
    return gpus.find_gpus()


def find_programs(names: Iterable[str], path: str, mode: Isolation, home: Path) -> tuple[str, ...]:
    """Those of `names` on the search path `path` that a job may start; `home` is the console's."""
    folders = [folder for folder in path.split(":") if folder.startswith("/")]
    hidden = [Path(place).resolve() for place in isolation.hidden_paths(mode, home)]
    return tuple(
        name for name in names if any(_can_start(Path(folder, name), mode, hidden) for folder in folders)
    )


def _can_start(program: Path, mode: Isolation, hidden: Iterable[Path]) -> bool:
    if not os.access(program, os.X_OK) or not program.is_file():
        return False
    real = program.resolve()
    if any(real.is_relative_to(place) for place in hidden):
        return False
    places = [place for each in (program, real) for place in (each, *each.parents)]
    return mode is not Isolation.PERSONS or all(place.stat().st_mode & stat.S_IXOTH for place in places)


@cache
def detect_isolation(python: str) -> Isolation:
    """The best that works here.  Takes some tens of milliseconds the first time in a process."""
    return next(
        (mode for mode in (Isolation.PERSONS, Isolation.NAMESPACES) if _works(python, mode)), Isolation.NONE
    )


@cache
def network_lacks(mode: Isolation, python: str = sys.executable) -> tuple[str, ...]:
    """Return the names of what jobs' own networks would need and this machine does not have.

    Takes some tens of milliseconds the first time in a process.  What failed is tried a second time, since a
    busy machine may fail once and the answer is kept.
    """
    if mode is Isolation.NONE:
        return ("user namespaces",)
    return _try_network(mode, python) and _try_network(mode, python)


def _try_network(mode: Isolation, python: str) -> tuple[str, ...]:
    try:
        done = _run([python, "-I", "-S", str(RUNNER), "network", mode])
        return tuple(json.loads(done.stdout))
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return (str(error),)


def _works(python: str, mode: Isolation) -> bool:
    if mode is Isolation.PERSONS and os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory(prefix="job-console-") as folder:
        try:
            return _run([python, "-I", "-S", str(RUNNER), "probe", mode, folder]).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, cwd="/", env={}, capture_output=True, timeout=30, check=False)
