"""The roles that a framework has, and what one more is called."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from jobs.dialects.dlc import job_types
from jobs.spec import Framework


def roles_of(framework: Framework | None) -> tuple[str, ...]:
    """The roles of the framework, as PAI-DLC's pages call them; none where they list none."""
    return job_types.of(framework).roles if framework else ()


def takes_more(framework: Framework | None) -> bool:
    """Whether there may be roles of one's own, as Ray has them."""
    return framework is not None and job_types.of(framework).more_workers


def next_role(framework: Framework | None, last: str, taken: Collection[str]) -> str:
    """What a role that is added is called: the framework's next, or like the last one with a number."""
    known = {name.lower() for name in taken}
    for name in roles_of(framework):
        if name.lower() not in known:
            return name
    return next(name for name in _numbered("Worker" if takes_more(framework) else last) if name not in taken)


def _numbered(stem: str) -> Iterator[str]:
    number = 2
    while True:
        yield f"{stem}-{number}"
        number += 1
