"""Ray: a head, workers, and the job's command as Ray's driver; `ray_launcher.py` runs in every replica."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from jobs.node.frameworks.job import Spec

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


def wrap_command(spec: Spec, position: int) -> str:
    """Return what each replica of the role at a position runs."""
    role, options = spec.roles[position], spec.framework_options
    settings = {
        "command": role.command,
        "replicas": sum(each.replicas for each in spec.roles),
        "role": role.name,
        "cpus": max(1, role.resources.cpu_milli // 1000),
        "gpus": role.resources.gpus,
        "memory_bytes": role.resources.memory_mib << 20,
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
