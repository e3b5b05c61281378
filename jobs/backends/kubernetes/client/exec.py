"""Processes in containers, by `pods/exec` over a WebSocket."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.backends.kubernetes.client.connection import Connection


class ExecStream:
    """A process that runs in a container."""


async def open_exec(
    connection: Connection,
    namespace: str,
    pod: str,
    container: str,
    argv: Sequence[str],
    *,
    stdin: bool = True,
    tty: bool = False,
    timeout_s: float = 10,
) -> ExecStream:
    """Start a process in a running container.  Raises ApiError or Unreachable."""
    raise NotImplementedError
