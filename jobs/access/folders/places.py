"""Which place in which replica's folders a request names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from jobs.access import entries
from jobs.access.folders import names
from jobs.access.folders.client import Shut
from jobs.models import Job, Task
from jobs.states import TaskState

WORK: Final = "work"


@dataclass(frozen=True, slots=True)
class Place:
    """The names on the way below a root of a replica; none for the root itself."""

    job: Job
    task: Task
    root: str
    names: Sequence[str]

    @property
    def name(self) -> str:
        """The last one; empty for a root."""
        return self.names[-1] if self.names else ""

    @property
    def path(self) -> list[str]:
        """As `client.FolderClient` takes it: the root, and the names."""
        return [self.root, *self.names]

    @property
    def folder(self) -> Self:
        """The folder that it lies in."""
        return replace(self, names=self.names[:-1])

    def inner(self, name: str) -> Self:
        """What is called so in it."""
        return replace(self, names=[*self.names, name])

    @property
    def query(self) -> str:
        """The parameters that name it in an address."""
        task = self.task
        return "&".join(
            (
                f"role={names.quoted(task.role)}",
                f"index={task.index}",
                f"root={names.quoted(self.root)}",
                f"path={names.way(self.names)}",
            )
        )


def find(job: Job, query: Mapping[str, Sequence[str]]) -> Place:
    """What `role`, `index`, `root` and `path` name; without a role the first replica that runs, or the first.

    Raises Shut.
    """

    def one(name: str) -> str:
        return (query.get(name) or [""])[-1]

    tasks = entries.current_tasks(job).select_related("attempt").order_by("ordinal")
    if role := one("role"):
        index = one("index") or "0"
        is_known = _is_index(index) and role.isprintable()  # half a surrogate pair names no role
        task = tasks.filter(role=role, index=int(index)).first() if is_known else None
        if task is None:
            raise Shut("nowhere")
    else:
        task = tasks.filter(state=TaskState.RUNNING).first() or tasks.first()
    if task is None:
        raise Shut("not_begun")
    return Place(job, task, one("root") or WORK, names.parts(one("path")))


def _is_index(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 7
