"""What the console asks of Slurm's controller, whichever way it gets there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from jobs.backends.base import QueuedJob
from jobs.backends.slurm.client.listing import Listed
from jobs.backends.slurm.script.layout import Sent


class Controller(Protocol):
    """One cluster's controller.  No answer is `Unreachable`, never an empty one."""

    def submit(self, script: str) -> int:
        """Hand a script over, held; its job id.  Raises Refused, NotSent or Unknown."""

    def listing(self, names: Sequence[str] = ()) -> Iterable[Listed]:
        """Every job of ours that Slurm remembers, or those so named, by one call."""

    def history(self, forgotten: Mapping[int, str]) -> Iterable[Listed] | None:
        """What accounting has of jobs by their numbers, each with its name: a row for each run, by one call.
        None where there is no accounting.
        """

    def remembered(self, names: Sequence[str], since: float) -> Iterable[Listed] | None:
        """What accounting has of jobs so called since then, the first component of each, by one call.  None
        where there is no accounting.
        """

    def known(self, jobs: Sequence[Sent]) -> Iterable[Listed]:
        """What has one of these names now, as far as its number is one of these."""

    def release(self, numbers: Sequence[int]) -> None:
        """Let held jobs go; those that are no longer there don't matter."""

    def cancel(self, numbers: Sequence[int], *, waiting_only: bool = False, name: str = "") -> None:
        """End jobs, or only those of them that have not begun, or are called so; absent ones don't matter."""

    def nodes(self) -> Iterable[Mapping[str, str]]:
        """Every node, by the names and in the words of `scontrol show node`."""

    def nodes_of(self, number: int) -> Iterable[str]:
        """The names of the nodes that a running job has, all its components."""

    def reservations(self) -> Iterable[Mapping[str, str]]:
        """Every reservation of nodes, by the names and in the words of `scontrol show reservation`."""

    def queue(self) -> Iterable[QueuedJob]:
        """Every job that waits or runs, by one call."""
