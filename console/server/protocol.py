"""HTTP as uvicorn reads it, for no longer and no larger than a request's head may be.

uvicorn leaves both to a proxy in front of it.  Without one, a connection that never finishes its request
would stay for ever, and a header without an end would be held in memory whole.

Measured with uvicorn's own protocol: a header of 256 MiB was accepted and held (285 MiB more memory), and a
head without its last line still held its connection after 90 seconds.  Here the first ends after 3 MiB, most
of them in the kernel's buffers, and the second after 20 seconds.
"""

from __future__ import annotations

import asyncio
from asyncio.events import TimerHandle
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS: Final = 20.0
LINGER_SECONDS: Final = 5.0
"""How long a body may go on that nobody waits for any more, because it was answered before its end."""

HEAD_BYTES: Final = 128 * 1024
"""Twice what any part of the console takes, so that those may refuse with a sentence."""


class BoundedHttp(HttpToolsProtocol):
    """Hangs up on whoever takes more than `HEAD_SECONDS` or `HEAD_BYTES` for a request's head.

    Bodies are bounded by whoever reads them (`jobs.live.bodies`).
    """

    _timer: TimerHandle | None = None
    _head_bytes = 0
    _in_head = True
    _is_whole = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        super().connection_made(transport)
        self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._head_bytes += len(data)
        if self._in_head and self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("Request head too large.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._begin()

    def on_headers_complete(self) -> None:
        self._end()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._is_whole = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._is_whole and not self._in_head and not self.pipeline:
            self._timer = self.loop.call_later(LINGER_SECONDS, self._too_slow)

    def _begin(self) -> None:
        self._end()
        self._in_head = True
        self._is_whole = False
        self._head_bytes = 0
        self._timer = self.loop.call_later(HEAD_SECONDS, self._too_slow)

    def _end(self) -> None:
        self._in_head = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self.transport.close()
