"""Locations in a replica's folders, as requests name them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from jobs.access import sessions
from jobs.access.folders import names
from jobs.access.folders.client import FolderRefused
from jobs.models import Job, Replica
from jobs.states import ReplicaState

WORK: Final = "work"


@dataclass(frozen=True, slots=True)
class FolderLocation:
    """Names below a root of a replica; none for the root itself."""

    job: Job
    replica: Replica
    root: str
    names: Sequence[str]

    @property
    def name(self) -> str:
        """The last one; empty for a root."""
        return self.names[-1] if self.names else ""

    @property
    def path(self) -> list[str]:
        """The path as `client.FolderClient` takes it: the root, and the names."""
        return [self.root, *self.names]

    @property
    def folder(self) -> Self:
        """The folder that it lies in."""
        return replace(self, names=self.names[:-1])

    def inner(self, name: str) -> Self:
        """Return the entry of that name in this folder."""
        return replace(self, names=[*self.names, name])

    @property
    def query(self) -> str:
        """The parameters that name it in an address."""
        replica = self.replica
        return "&".join(
            (
                f"role={names.quote_name(replica.role)}",
                f"index={replica.index}",
                f"root={names.quote_name(self.root)}",
                f"path={names.way(self.names)}",
            )
        )


def find(job: Job, query: Mapping[str, Sequence[str]]) -> FolderLocation:
    """Return the location that `role`, `index`, `root` and `path` name.

    Without a role it is in the first replica that runs, or else in the first.  Raises Shut.
    """

    def one(name: str) -> str:
        return (query.get(name) or [""])[-1]

    replicas = sessions.current_replicas(job).select_related("attempt").order_by("ordinal")
    if role := one("role"):
        index = one("index") or "0"
        is_known = _is_index(index) and role.isprintable()  # half a surrogate pair names no role
        replica = replicas.filter(role=role, index=int(index)).first() if is_known else None
        if replica is None:
            raise FolderRefused("nowhere")
    else:
        replica = replicas.filter(state=ReplicaState.RUNNING).first() or replicas.first()
    if replica is None:
        raise FolderRefused("not_begun")
    return FolderLocation(job, replica, one("root") or WORK, names.parts(one("path")))


def _is_index(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 7
