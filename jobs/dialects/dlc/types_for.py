"""The job type and role types under which a JobSpec of any origin is written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from jobs.dialects.dlc import keys
from jobs.dialects.dlc.job_types import BY_NAME, OTHER_NAMES, JobType, of
from jobs.spec import JobSpec

_GUESSED: Final = ("PyTorchJob", "TFJob", "RayJob")
"""The types tried, in this order, for a job without a framework."""

_NOT_IN_TYPES: Final = re.compile(r"[^A-Za-z0-9\-]+")


def job_type(spec: JobSpec, extras: Mapping[str, object]) -> JobType:
    """The framework's job type; without a framework the kept one, or the first whose roles fit."""
    if spec.framework is not None:
        return of(spec.framework)
    kept = extras.get(f"/{keys.JOB_TYPE.key}")
    if isinstance(kept, str) and kept in BY_NAME:
        return BY_NAME[kept]
    names = [_known_as(role.name) for role in spec.roles]
    for name in _GUESSED:
        if all(BY_NAME[name].role(role) for role in names):
            return BY_NAME[name]
    return BY_NAME["PyTorchJob" if len(names) <= len(BY_NAME["PyTorchJob"].roles) else "TFJob"]


def role_types(
    spec: JobSpec, chosen: JobType, named: Mapping[str, str] = MappingProxyType({})
) -> tuple[str, ...]:
    """A `Type` for each role: the one it was `named` by, or its own name, else the nearest that is free."""
    wanted = {role.name: chosen.role(named.get(role.name, role.name)) for role in spec.roles}
    taken = {name for name in wanted.values() if name}
    types: list[str] = []
    for role in spec.roles:
        own = wanted[role.name]
        if own is None or own in types:
            own = _free(role.name, chosen, taken | set(types))
        types.append(own)
    return tuple(types)


def _free(name: str, chosen: JobType, taken: set[str]) -> str:
    near = _known_as(name)
    for candidate in (near, *chosen.roles):
        known = chosen.role(candidate) if chosen.roles else None
        if known and known not in taken:
            return known
    plain = _NOT_IN_TYPES.sub("-", name).strip("-") or "role"
    candidate, number = f"Worker-{plain}" if chosen.more_workers else plain, 2
    while candidate in taken:
        candidate, number = f"{candidate}-{number}", number + 1
    return candidate


def _known_as(name: str) -> str:
    return OTHER_NAMES.get(name.lower(), name)
