"""Server-Sent Events: the bytes of an event, and the response that carries them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Final

from django.http import StreamingHttpResponse


def event(name: str, data: object, identity: str = "") -> bytes:
    """Return an event; `data` is sent as JSON, which has no line breaks, `identity` is its `id:`."""
    return encode_event(name, json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode(), identity)


def encode_event(name: str, data: bytes, identity: str = "") -> bytes:
    """Return an event with `data` that is JSON already."""
    first = f"id: {identity}\n" if identity else ""
    return b"%bevent: %b\ndata: %b\n\n" % (first.encode(), name.encode(), data)


PING: Final = event("ping", {})


class EventStream(StreamingHttpResponse):
    """A response that sends `events` as they come; `on_close` is called once it is over, begun or not."""

    def __init__(self, events: AsyncIterator[bytes], on_close: Callable[[], None]) -> None:
        super().__init__(events, content_type="text/event-stream")
        self.headers["Cache-Control"] = "no-store"
        self.headers["X-Accel-Buffering"] = "no"  # nginx passes each event on at once
        self._on_close = on_close

    def close(self) -> None:
        self._on_close()
        super().close()
