"""What the options of a script say of a job, and the options that say it.

An option that says something only Slurm understands (`--begin=teatime`) has no meaning here: it is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from jobs.dialects.sbatch import hosts, sizes, times, values

DEFAULT_NAME: Final = "sbatch"
"""What Slurm calls a script that it reads from a pipe."""


def _text(value: str) -> str | None:
    return value or None


def _limit(value: str) -> int | None:
    """A time limit; 0 is none."""
    return times.seconds(value)


READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "job-name": _text,
    "comment": _text,
    "partition": _text,
    "time": _limit,
    "signal": values.signal,
    "begin": times.moment,
    "dependency": values.dependency,
    "hold": lambda _value: True,
    "no-requeue": lambda _value: True,
    "requeue": lambda value: None if value else True,
    "export": values.export,
    "exclude": hosts.names,
    "nodelist": hosts.names,
    "constraint": values.features,
    "container-image": _text,
    "container-mounts": values.mounts,
    **dict.fromkeys(sizes.OPTIONS, lambda _value: True),
}
"""Option → what a value of it means; None for one that means nothing here."""

OF_THE_JOB: Final = frozenset(
    {
        "job-name",
        "comment",
        "partition",
        "time",
        "signal",
        "begin",
        "dependency",
        "hold",
        "no-requeue",
        "requeue",
        "export",
        "exclude",
        "container-mounts",
    }
)
"""Options that say something of the whole job: read in the first component only."""


def understood(component: int, name: str, value: str) -> bool:
    """Whether an option means something in a JobSpec."""
    if component and name in OF_THE_JOB:
        return False
    reader = READERS.get(name)
    return reader is not None and reader(value) is not None


def meaning(said: Mapping[str, str], name: str) -> Any:
    """What the option `name` says; None when it is not there or means nothing."""
    return READERS[name](said[name]) if name in said else None


def kept_or(said: Mapping[str, str], name: str, wanted: object, written: str) -> dict[str, str]:
    """The option as it was said while it still means `wanted`; else as `written`, unless that is ""."""
    if name in said and meaning(said, name) == wanted:
        return {name: said[name]}
    return {name: written} if written else {}
