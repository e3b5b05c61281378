"""What this machine has."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jobs.backends.base import Gpu
from jobs.backends.local import gpus


@dataclass(frozen=True, slots=True)
class Total:
    """Everything that jobs may share out among themselves."""

    cpu_milli: int
    memory_mib: int
    gpus: tuple[Gpu, ...]


def total(cpu_milli: int | None, memory_mib: int | None, types: Mapping[str, int] | None) -> Total:
    """What was said, and for the rest what is found."""
    return Total(
        cpu_milli or len(os.sched_getaffinity(0)) * 1000,
        memory_mib or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
        _found() if types is None else gpus.imagined(types),
    )


def most_processes() -> int:
    """Return how many processes the kernel has numbers for."""
    return int(Path("/proc/sys/kernel/pid_max").read_text(encoding="utf-8"))


@cache
def _found() -> tuple[Gpu, ...]:
    return gpus.found()
