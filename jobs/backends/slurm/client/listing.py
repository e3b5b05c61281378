"""The queue as Slurm lists it, whichever way it was asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Listed:
    """One job as Slurm tells it, for a job of several components the first of them.  Times are seconds since
    the epoch; `exit_code` is 128+n for a signal; `waited` is whether it was ever free to start; `user` is
    whose it is, unless it is the console's own.
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
        """Whether it waits to be released."""
        return self.state == "PENDING" and self.reason == "JobHeldUser"

    @property
    def is_as_submitted(self) -> bool:
        """Whether nothing has happened to it since it was submitted, as far as Slurm knows."""
        return self.is_held and not self.waited and not self.restarts

    @property
    def was_refused(self) -> bool:
        """Whether it is only what a refused sbatch left behind."""
        return self.state == "FAILED" and not self.nodes

    def is_of(self, user: str) -> bool:
        """Whether it is a job of that user, '' for the console's own, and not what a refusal left behind."""
        return self.user == user and not self.was_refused


def by_name(rows: Iterable[Listed]) -> dict[str, list[Listed]]:
    """Jobs by their names, those of one name in order of their numbers."""
    found: dict[str, list[Listed]] = {}
    for listed in sorted(rows, key=lambda listed: listed.number):
        found.setdefault(listed.name, []).append(listed)
    return found
