"""Ray: a head, workers, and the job's command as Ray's driver; `ray_launcher.py` runs in every replica."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

RUNTIME_ENV: Final = "RayRuntimeEnv"
RETRIES: Final = "RaySubmitterBackoffLimit"
OBJECT_STORE: Final = "RayObjectStoreMemoryBytes"

OPTIONS: Final = frozenset({RUNTIME_ENV, RETRIES, OBJECT_STORE})
"""The advanced settings that have an effect (DLC page).

Those for Redis have none: Ray stores its state there for a head that starts again, and here the job ends with
its head.
"""

DEFAULT_RETRIES: Final = 2
"""KubeRay's default for its submitter."""

_FIND: Final = """\
command -v ray >/dev/null 2>&1 || { echo %s >&2; exit 127; }
_python=$(command -v python3 || command -v python) || { echo 'There is no python3.' >&2; exit 127; }
"""
_MISSING: Final = (
    "Ray is not installed where this job runs: there is no program ray. "
    'Choose an image or an environment that has the Python package "ray[default]".'
)


class Amounts(Protocol):
    """The amounts of a replica."""

    @property
    def cpu_milli(self) -> int: ...
    @property
    def memory_mib(self) -> int: ...
    @property
    def gpus(self) -> int: ...


def wrap_command(command: str, replicas: int, role: str, amounts: Amounts, options: Mapping[str, str]) -> str:
    """Return what each replica of a role runs; `replicas` counts those of all roles."""
    settings = {
        "command": command,
        "replicas": replicas,
        "role": role,
        "cpus": max(1, amounts.cpu_milli // 1000),
        "gpus": amounts.gpus,
        "memory_bytes": amounts.memory_mib << 20,
        "object_store_bytes": read_number(options, OBJECT_STORE),
        "runtime_env": options.get(RUNTIME_ENV, ""),
        "retries": read_number(options, RETRIES, DEFAULT_RETRIES),
    }
    program = Path(__file__).with_name("ray_launcher.py").read_text(encoding="utf-8")
    arguments = shlex.join([program, json.dumps(settings)])
    return f'{_FIND % shlex.quote(_MISSING)}exec "$_python" -I -S -c {arguments}'


def count_shared_memory_mib(options: Mapping[str, str]) -> int:
    """Return the MiB of shared memory that the object store takes; 0 where its size is Ray's own choice."""
    return -(-read_number(options, OBJECT_STORE) // (1 << 20))


def read_number(options: Mapping[str, str], name: str, default: int = 0) -> int:
    """Return the number of an option, or the default for any other text."""
    value = options.get(name, "")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 16 else default
