"""The console's jobs in Slurm's queue, however it was asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ListedJob:
    """One job of Slurm, or its first component.

    Times are seconds since the epoch; `exit_code` is 128+n for a signal; `waited` tells whether it was ever
    free to start; `user` is "" for the console's own jobs.
    """

    number: int
    name: str
    state: str
    reason: str
    restarts: int = 0
    exit_code: int = 0
    starts_at: float | None = None
    ended_at: float | None = None
    nodes: str = ""
    waited: bool = True
    user: str = ""

    @property
    def is_held(self) -> bool:
        """Return whether it waits to be released."""
        return self.state == "PENDING" and self.reason == "JobHeldUser"

    @property
    def is_as_submitted(self) -> bool:
        """Return whether it is as it was submitted, as far as Slurm knows."""
        return self.is_held and not self.waited and not self.restarts

    @property
    def was_refused(self) -> bool:
        """Return whether it is only the rest of a refused submission."""
        return self.state == "FAILED" and not self.nodes

    def is_of(self, user: str) -> bool:
        """Return whether it is a job of that user, "" for the console's own, and was not refused."""
        return self.user == user and not self.was_refused


def by_name(rows: Iterable[ListedJob]) -> dict[str, list[ListedJob]]:
    """Group jobs by their names, those of one name in order of their numbers."""
    found: dict[str, list[ListedJob]] = {}
    for listed in sorted(rows, key=lambda listed: listed.number):
        found.setdefault(listed.name, []).append(listed)
    return found
