"""A thread pool for calls that mostly wait for an engine."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from types import TracebackType
from typing import Self, TypeVar

T = TypeVar("T")


class ThreadPool:
    """A pool of `count` threads that do not use the database; with one, the caller's own thread does it."""

    def __init__(self, count: int) -> None:
        self._pool = ThreadPoolExecutor(count, "hand") if count > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Wait until all calls are done."""
        if self._pool is not None:
            self._pool.shutdown()

    def do(self, act: Callable[[], T]) -> Future[T]:
        """Call `act` in a thread, in the order of the calls."""
        if self._pool is not None:
            return self._pool.submit(copy_context().run, act)
        done: Future[T] = Future()
        done.set_result(act())
        return done
