"""Carrying, for as long as somebody is there and may."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

Allowed = Callable[[], Awaitable[bool]]


async def until_first(
    work: list[Coroutine[Any, Any, None]], allowed: Allowed, seconds: float
) -> asyncio.Task[None] | None:
    """Run all of `work` until the first of it is done, and end the rest; the one that was done.

    None when `allowed`, asked every `seconds`, said no: then all of it was ended.
    """
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        while True:
            done, _running = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if done:
                return next(task for task in tasks if task in done)
            if not await allowed():
                return None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
