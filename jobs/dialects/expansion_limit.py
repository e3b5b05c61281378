"""A limit on the length of a job file once its references stand in every place that names them.

A short text can mean a very long one: a parameter that is named a thousand times, a YAML alias, a sweep.
Every such place asks for room before it copies.
"""

from __future__ import annotations

from typing import Final

MAX_EXPANDED: Final = 4 * 1024 * 1024
"""Characters that references in one job file may add to it."""

MAX_SWEEP: Final = 16 * 1024 * 1024
"""Characters of all jobs of a sweep together."""


class ExpansionAllowance:
    """The rest of an allowance; once something did not fit, nothing does."""

    def __init__(self, most: int = MAX_EXPANDED) -> None:
        self.most = most
        self._left = most

    @property
    def is_exceeded(self) -> bool:
        """Return whether more was asked for than there was."""
        return self._left < 0

    def take(self, length: int) -> bool:
        """Use room for `length` characters; False when there is not enough."""
        if self._left >= 0:
            self._left -= length
        return self._left >= 0
