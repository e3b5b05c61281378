"""Environment variables by which processes of a replica are told from others, where nothing better does."""

from __future__ import annotations

from typing import Final

REPLICA: Final = "JOB_CONSOLE_REPLICA"
"""In each process of a replica: the attempt and the replica's name."""

RUNNER: Final = "JOB_CONSOLE_RUNNER"
"""In processes that run and serve replicas on a node beside their commands: the attempt's folder there."""
