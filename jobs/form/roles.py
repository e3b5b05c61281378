"""The roles of a framework, and the name of another one."""

from __future__ import annotations

from collections.abc import Collection
from itertools import count

from jobs.dialects.dlc import job_types
from jobs.spec import Framework


def roles_of(framework: Framework | None) -> tuple[str, ...]:
    """The roles of the framework, as PAI-DLC's pages call them; none where they list none."""
    return job_types.find_job_type(framework).roles if framework else ()


def takes_more(framework: Framework | None) -> bool:
    """Whether there may be roles of one's own, as Ray has them."""
    return framework is not None and job_types.find_job_type(framework).more_workers


def next_role(framework: Framework | None, last: str, taken: Collection[str]) -> str:
    """Return the name of an added role: the framework's next, or a numbered one."""
    known = {name.lower() for name in taken}
    for name in roles_of(framework):
        if name.lower() not in known:
            return name
    stem = "Worker" if takes_more(framework) else last
    return next(name for number in count(2) if (name := f"{stem}-{number}") not in taken)
