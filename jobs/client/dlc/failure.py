"""Exit statuses of `dlc`, and the vendor's error as a failure of a command."""

from __future__ import annotations

from typing import Final

from jobs.client.failure import CommandFailure

REFUSED: Final = 1
"""The API refused, or the job did not succeed."""

USAGE: Final = 2
"""The command was called wrongly, or a file can't be read."""

UNREACHABLE: Final = 3
"""No answer came."""


class ApiRefused(CommandFailure):
    """The API's error: `code` and `request_id` of its answer."""

    def __init__(self, status: int, code: str, message: str, request_id: str) -> None:
        self.code, self.request_id = code, request_id
        text = f"Error: {code} ({status})\nMessage: {message}\nRequestId: {request_id}"
        super().__init__(text, REFUSED)
