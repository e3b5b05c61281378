"""What is done at Slurm as one of the users as whom jobs run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from jobs.backends.slurm.client.rest.acting import ByToken
from jobs.backends.slurm.config import JWT, SlurmConfig
from jobs.backends.slurm.identity.helper import Helper


class Acting(Protocol):
    """One user of one cluster.  No answer is `Unreachable`, as is what that user may not do."""

    def submit(self, key: str, script: str) -> int:
        """Submit a script, held; its job id.  Raises Refused, NotSent or Unknown."""

    def release(self, numbers: Sequence[int]) -> None:
        """Let held jobs go; those that are no longer there don't matter."""

    def end(self, numbers: Sequence[int], *, waiting_only: bool = False, name: str = "") -> None:
        """End jobs, or those called so; those that are no longer there don't matter."""


def acting(config: SlurmConfig, user: str) -> Acting:
    """In whichever way the cluster tells its people apart."""
    return ByToken(config, user) if config.identity == JWT else Helper(config, user)
