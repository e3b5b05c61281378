"""While many places of one text are worked out, it is read once: reading costs more than finding.

What was read is kept for as long as a `with reading_once():` lasts, and no longer: it may hold secrets.
Nothing that was read may be changed there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_KEPT: Final[ContextVar[dict[object, object] | None]] = ContextVar("_KEPT", default=None)


@contextmanager
def reading_once() -> Iterator[None]:
    """Inside, a function that is marked with `once` answers the same question once."""
    token = _KEPT.set({})
    try:
        yield
    finally:
        _KEPT.reset(token)


def once(read: Callable[P, R]) -> Callable[P, R]:
    """Mark a function that reads a text; its arguments can be hashed.  What it raises is not kept."""

    @wraps(read)
    def reading(*args: P.args, **kwargs: P.kwargs) -> R:
        kept = _KEPT.get()
        if kept is None:
            return read(*args, **kwargs)
        question = (read, args, tuple(kwargs.items()))
        if question not in kept:
            kept[question] = read(*args, **kwargs)
        return kept[question]  # type: ignore[return-value]  # what `read` answered to just that

    return reading
