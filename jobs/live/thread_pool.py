"""A thread pool for database and storage calls of streams, which leave no connection open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

from django.db import connections

P = ParamSpec("P")
T = TypeVar("T")

THREADS: Final = 8

_pool: Final = ThreadPoolExecutor(THREADS, thread_name_prefix="live")


async def run_in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `work` in the thread pool of all streams; close its database connections at once."""

    def run() -> T:
        try:
            return work(*args, **kwargs)
        finally:
            connections.close_all()

    return await asyncio.get_running_loop().run_in_executor(_pool, run)
