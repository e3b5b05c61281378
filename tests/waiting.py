"""Waiting for something that another process or thread is about to do, without guessing how long it takes."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 2
"""How often the time is waited that a test gives: several run at a time, on machines of many kinds."""


def wait_for(predicate: Callable[[], T | None], timeout: float = 60.0, interval: float = 0.02) -> T:
    """Call `predicate` until it answers something true and give that back.

    `timeout` and `interval` are seconds. Raises `AssertionError`, with the last answer, when PATIENCE times
    `timeout` is up.
    """
    timeout *= PATIENCE
    deadline = time.monotonic() + timeout
    while not (answer := predicate()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not true within {timeout:g} s: {predicate!r} last answered {answer!r}")
        time.sleep(interval)
    return answer
