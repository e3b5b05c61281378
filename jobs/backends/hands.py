"""Doing several things at the same time that mostly wait for somebody else."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from types import TracebackType
from typing import Self, TypeVar

T = TypeVar("T")


class Hands:
    """So many threads, which leave the database alone; one is the caller's own, in which nothing else is done
    meanwhile.
    """

    def __init__(self, count: int) -> None:
        self._pool = ThreadPoolExecutor(count, "hand") if count > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Wait until everything is done."""
        if self._pool is not None:
            self._pool.shutdown()

    def do(self, act: Callable[[], T]) -> Future[T]:
        """Have it done, after whatever was said before."""
        if self._pool is not None:
            return self._pool.submit(copy_context().run, act)
        done: Future[T] = Future()
        done.set_result(act())
        return done
