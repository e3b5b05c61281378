"""The record of an attempt, which the console writes when it submits the attempt."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from jobs.backends.remote import attempts
from jobs.spec import JobSpec, RoleSpec

FILE: Final = "job.json"
FORMAT: Final = 1
READABLE: Final = 0o640
"""The mode of the console's own files that a job of another user reads."""

_CACHE_SIZE: Final = 16_384


class UnknownFormat(ValueError):
    """The record is of a release that this one can't read."""


@dataclass(frozen=True, slots=True)
class CompletionCounts:
    """How many failures or successes of a role end the job; None for no limit."""

    min_failed: int | None
    min_succeeded: int | None


@dataclass(frozen=True, slots=True)
class RoleRecord:
    """A role as it was submitted; `states.verdict` counts by it.

    `prefix` begins the names of its replicas in files.  `ports` lists the requested ports as label, number
    (0 for any) and position among the `each` ports of a replica; `offset` is the job's first of the role.
    """

    name: str
    prefix: str
    replicas: int
    completion: CompletionCounts
    memory_mib: int
    image: bool
    contained: bool
    offset: int
    each: int
    ports: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """An attempt as it was submitted.

    `user` is the UNIX user of the job, "" for the console's own; `apart` tells whether its nodes share no
    folder with the console; `checks_nodes` that the job begins with the sanity check; `makes_token` that the
    attempt makes the token of its relay itself.  `kind` is the operator's kind as which its replicas
    run, "" for none.
    """

    roles: tuple[RoleRecord, ...]
    ports: tuple[int, int]
    time_limit_s: int | None = None
    user: str = ""
    apart: bool = False
    checks_nodes: bool = False
    makes_token: bool = False
    kind: str = ""

    @property
    def file_mode(self) -> int:
        """The mode of the console's own files that the job reads."""
        return READABLE if self.user else 0o600

    def replicas(self) -> Iterator[tuple[RoleRecord, int, str]]:
        """Yield every replica: role, index, name in files."""
        for role in self.roles:
            for index in range(role.replicas):
                yield role, index, f"{role.prefix}-{index}"

    def replica_name(self, role: str, index: int) -> str | None:
        """Return a replica's name in files, None if there is no such replica."""
        names = (name for each, number, name in self.replicas() if (each.name, number) == (role, index))
        return next(names, None)


def render(
    spec: JobSpec,
    port_range: tuple[int, int],
    ports: Sequence[Sequence[tuple[str, int]]],
    is_contained: Callable[[RoleSpec], bool],
    **others: str | bool,
) -> str:
    """Return the record of an attempt as JSON.

    `ports` has label and number (0 for any) of all ports of a replica, role by role; only requested ones are
    recorded.  `others` are those optional fields of `AttemptRecord` that have another value than usual.
    """
    roles, offset = list[dict[str, Any]](), 0
    for ordinal, (role, each) in enumerate(zip(spec.roles, ports, strict=True)):
        requested = {port.label for port in role.ports}
        roles.append(
            {
                "name": role.name,
                "prefix": attempts.file_prefix(role.name, ordinal),
                "replicas": role.replicas,
                "min_failed": role.completion.min_failed,
                "min_succeeded": role.completion.min_succeeded,
                "memory_mib": role.resources.memory_mib,
                "image": bool(role.image),
                "contained": is_contained(role),
                "offset": offset,
                "each": len(each),
                "ports": [(*port, position) for position, port in enumerate(each) if port[0] in requested],
            }
        )
        offset += role.replicas * len(each)
    value = {
        "format": FORMAT,
        "ports": port_range,
        "time_limit_s": spec.time_limit_s,
        "roles": roles,
        **{name: other for name, other in others.items() if other},
    }
    return json.dumps(value, ensure_ascii=False)


def read_record(folder: Path) -> AttemptRecord | None:
    """Return the record of the attempt in `folder`, None if there is no such attempt."""
    try:
        found = (folder / FILE).stat()
        return _load(str(folder), found.st_ino, found.st_mtime_ns)
    except (FileNotFoundError, NotADirectoryError):
        return None


@lru_cache(maxsize=_CACHE_SIZE)
def _load(folder: str, _inode: int, _mtime_ns: int) -> AttemptRecord:
    value = json.loads(Path(folder, FILE).read_text(encoding="utf-8"))
    if value["format"] != FORMAT:
        raise UnknownFormat(value["format"])
    roles, (first, last) = tuple(map(_role, value["roles"])), value["ports"]
    names = ("time_limit_s", "user", "apart", "checks_nodes", "makes_token", "kind")
    optional = {name: value[name] for name in names if name in value}
    return AttemptRecord(roles, (first, last), **optional)


def _role(value: Mapping[str, Any]) -> RoleRecord:
    fields = {"contained": False, **value}  # which the first releases did not write
    counts = CompletionCounts(fields.pop("min_failed"), fields.pop("min_succeeded"))
    return RoleRecord(**{**fields, "completion": counts, "ports": tuple(map(tuple, fields["ports"]))})
