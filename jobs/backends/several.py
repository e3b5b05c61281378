"""Handing several jobs over at the same time, for engines that are mostly waited for."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class Several(Protocol):
    """A backend whose `submit` may be called by several threads at the same time."""

    @property
    def at_once(self) -> int:
        """By how many, so that its engine is not overrun."""
