"""The interface to Slurm's controller, by its commands or by REST."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from jobs.backends.base import QueuedJob
from jobs.backends.slurm.client.listing import ListedJob
from jobs.backends.slurm.handles import SlurmJob


class JobActions(Protocol):
    """Actions on jobs as one user.  No answer raises Unreachable, as does what the user may not do."""

    def submit(self, key: str, script: str) -> int:
        """Submit a script, held; return its job id.  Raises Refused, NotSent or Unknown."""

    def release(self, numbers: Sequence[int]) -> None:
        """Release held jobs; absent ones are ignored."""

    def cancel(self, numbers: Sequence[int], *, waiting_only: bool = False, name: str = "") -> None:
        """Cancel jobs, or those of them that wait, or have that name; absent ones are ignored."""


class Controller(JobActions, Protocol):
    """One cluster's controller, asked as the console.  No answer raises Unreachable."""

    def list_jobs(self, names: Sequence[str] = ()) -> Iterable[ListedJob]:
        """Return every job of the console that Slurm knows, or those of these names, by one call."""

    def find_forgotten(self, forgotten: Mapping[int, str]) -> Iterable[ListedJob] | None:
        """Return the runs that accounting has of jobs by their numbers, each with its name, by one call.

        None where there is no accounting.
        """

    def find_accounted(self, names: Sequence[str], since: float) -> Iterable[ListedJob] | None:
        """Return the first component of the jobs of these names since then in accounting, by one call.

        None where there is no accounting.
        """

    def find_named(self, jobs: Sequence[SlurmJob]) -> Iterable[ListedJob]:
        """Return the jobs that have one of these names now, at least those of these numbers."""

    def nodes(self) -> Iterable[Mapping[str, str]]:
        """Return every node, in the words of `scontrol show node`."""

    def nodes_of(self, number: int) -> Iterable[str]:
        """Return the names of the nodes of a running job, of all its components."""

    def reservations(self) -> Iterable[Mapping[str, str]]:
        """Return every reservation of nodes, in the words of `scontrol show reservation`."""

    def queue(self) -> Iterable[QueuedJob]:
        """Return every job that waits or runs, by one call."""
