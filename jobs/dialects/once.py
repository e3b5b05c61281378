"""While many places of one text are worked out, it is read once: reading costs more than finding.

What was read is kept for as long as a `with reading_once():` lasts, and no longer: it may hold secrets.
Nothing that was read may be changed there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Final, ParamSpec, TypeAlias, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_Question: TypeAlias = tuple[Callable[..., object], tuple[int, ...]]

_KEPT: Final[ContextVar[dict[_Question, tuple[object, object]] | None]] = ContextVar("_KEPT", default=None)
"""What was read, by the function and which objects it was given; these are kept alive with the answer."""


@contextmanager
def reading_once() -> Iterator[None]:
    """Inside, a function that is marked with `once` answers the same question once.

    One inside another keeps what the outer one has.
    """
    if _KEPT.get() is not None:
        yield
        return
    token = _KEPT.set({})
    try:
        yield
    finally:
        _KEPT.reset(token)


def once(read: Callable[P, R]) -> Callable[P, R]:
    """Mark a function that reads a text.  What it raises is not kept."""

    @wraps(read)
    def reading(*args: P.args, **kwargs: P.kwargs) -> R:
        kept = _KEPT.get()
        if kept is None:
            return read(*args, **kwargs)
        given = (*args, *kwargs.values())
        question = (read, tuple(map(id, given)))
        if question not in kept:
            kept[question] = (read(*args, **kwargs), given)
        return kept[question][0]  # type: ignore[return-value]  # what `read` answered to just that

    return reading
