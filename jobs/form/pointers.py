"""Getting and setting values of a JobSpec that was taken apart into dicts and lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from jobs.spec import JobSpec

Parts = dict[str, Any]
"""A JobSpec taken apart: `JobSpec.model_validate` of it is the JobSpec again."""

ABSENT: Final = object()

OPTIONAL: Final[Mapping[str, tuple[str, ...]]] = {
    "registry_auth": ("registry", "username", "password", "file_uri"),
    "code": ("id", "uri", "branch", "commit", "path"),
    "end_signal": ("signal",),
    "reserve_after": ("seconds",),
    "tensorboard": ("enabled", "log_path"),
}
"""Parts that a job may lack: each is there as long as one of these members says something."""

OPTIONAL_OF_ROLE: Final[Mapping[str, tuple[str, ...]]] = {"bid": ("discount_percent", "price_micro")}


def parts_of(spec: JobSpec) -> Parts:
    """The JobSpec taken apart."""
    return spec.model_dump(mode="python")


def split(path: str, numbers: Sequence[int] = ()) -> list[str | int]:
    """The steps of a pointer, its `*` filled with `numbers`."""
    left = iter(numbers)
    return [next(left) if step == "*" else step for step in path.split("/")[1:]]


def get(parts: Parts, steps: Sequence[str | int]) -> Any:
    """What stands there; ABSENT where a part around it is missing."""
    found: Any = parts
    for step in steps:
        if isinstance(found, dict):
            found = found.get(str(step), ABSENT)
        elif isinstance(found, (list, tuple)) and isinstance(step, int) and step < len(found):
            found = found[step]
        else:
            return ABSENT
    return found


def put(parts: Parts, steps: Sequence[str | int], value: Any) -> None:
    """Set what stands there; a part that the job lacked comes into being."""
    around: Any = parts
    for step in steps[:-1]:
        if isinstance(around, dict) and around.get(str(step)) is None:
            around[str(step)] = {}
        around = around[step]
    around[steps[-1]] = value


def settle(parts: Parts, before: Parts) -> Parts:
    """`parts` without optional parts that were changed from `before` and say nothing any more."""
    _settle(parts, before, OPTIONAL)
    for role, known in zip(parts["roles"], before["roles"], strict=False):
        _settle(role, known, OPTIONAL_OF_ROLE)
    return parts


def _settle(owner: Parts, before: Parts, optional: Mapping[str, tuple[str, ...]]) -> None:
    for name, members in optional.items():
        part = owner.get(name)
        if isinstance(part, dict) and part != before.get(name) and not any(map(part.get, members)):
            owner[name] = None
