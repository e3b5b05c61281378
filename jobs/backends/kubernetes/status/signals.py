"""Signals to a replica, by a shell in its container: kubelets send SIGTERM and SIGKILL alone."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final

from jobs.backends.base import Unreachable
from jobs.backends.kubernetes.client.api import ApiError
from jobs.backends.kubernetes.client.connection import ApiConnection
from jobs.backends.kubernetes.client.exec import open_exec
from jobs.backends.kubernetes.objects.pods import find_main

SIGNALS: Final = frozenset({"HUP", "INT", "KILL", "TERM", "USR1", "USR2"})

_SEND: Final = 'kill -s "$1" -- -1'
"""To every process in the pod but its first, which only waits, and the shell's own."""


def send_signal(connection: ApiConnection, pod: dict[str, Any], name: str, timeout_s: float) -> None:
    """Send a signal to a replica's processes, if its container runs and has a shell."""
    if name not in SIGNALS:
        return
    with suppress(ApiError, TimeoutError, Unreachable):
        asyncio.run(asyncio.wait_for(_send(connection, pod, name), timeout_s))


async def _send(connection: ApiConnection, pod: dict[str, Any], name: str) -> None:
    about = pod["metadata"]
    argv = ["/bin/sh", "-c", _SEND, "sh", name]
    stream = await open_exec(connection, about["namespace"], about["name"], find_main(pod), argv, stdin=False)
    try:
        await stream.wait()
    finally:
        await stream.close()
