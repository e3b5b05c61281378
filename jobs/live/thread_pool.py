"""A thread pool for database and storage calls of streams, which leave no connection open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

from asgiref.sync import SyncToAsync, sync_to_async
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


async def leave_request_thread() -> None:
    """Release the thread that Django keeps for this request, and its database connection.

    Under ASGI every request has a thread of its own from the first blocking call to the last byte of the
    answer.  A page needs it for milliseconds; a stream would hold it for hours.  Should Django need one
    again, to close the response, it makes another.
    """
    context = SyncToAsync.thread_sensitive_context.get(None)
    if context is None:
        return  # a test client; its thread is the test's own
    await sync_to_async(connections.close_all)()
    executor = SyncToAsync.context_to_thread_executor.pop(context, None)
    if executor is not None:
        executor.shutdown(wait=False)
