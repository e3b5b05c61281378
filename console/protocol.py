"""HTTP as uvicorn reads it, for no longer and no larger than a request's head may be.

uvicorn leaves both to a proxy in front of it.  Without one, a connection that never finishes its request
would stay for ever, and a header without an end would be kept whole.
"""

from __future__ import annotations

import asyncio
from asyncio.events import TimerHandle
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS: Final = 20.0
HEAD_BYTES: Final = 128 * 1024
"""Twice what any part of the console takes, so that those may refuse with a sentence."""


class BoundedHttp(HttpToolsProtocol):
    """Hangs up on whoever takes more than `HEAD_SECONDS` or `HEAD_BYTES` for a request's head."""

    _timer: TimerHandle | None = None
    _head_bytes = 0
    _in_head = True

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

    def _begin(self) -> None:
        self._end()
        self._in_head = True
        self._head_bytes = 0
        self._timer = self.loop.call_later(HEAD_SECONDS, self._too_slow)

    def _end(self) -> None:
        self._in_head = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self.transport.close()
