"""The failure of a command: a sentence for the person, and an exit status for scripts."""

from __future__ import annotations

from typing import Final

FAILED: Final = 125
"""The command itself failed; a job's own exit codes are others, as with containers."""


class CommandFailure(Exception):
    """`str` says what; `status` is the command's exit status."""

    def __init__(self, text: str, status: int = FAILED) -> None:
        super().__init__(text)
        self.status = status
