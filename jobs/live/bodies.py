"""Bodies of requests: how large and how slow they may be, and which are read by their view.

Nearly all are read whole before their view begins (`console.server.handler`), so a limit holds before the
first byte: `DATA_UPLOAD_MAX_MEMORY_SIZE`, or what `takes_at_most` says of the view, and less for whoever
shows no sign-in and no token.  A view that is marked by `takes_body` is called without a body; it decides,
from the head alone, and answers `Awaiting`, which takes the body as it comes: a file goes straight through.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final, TypeVar

from django.conf import settings
from django.core.exceptions import RequestAborted
from django.http import HttpResponse

Take = Callable[[AsyncIterator[bytes]], Awaitable[HttpResponse]]
View = TypeVar("View", bound=Callable[..., Any])

_MARK: Final = "takes_body"
_MOST: Final = "takes_at_most"

ANONYMOUS_BYTES: Final = 64 * 1024
"""The longest body of a request without a session's cookie and without a token: sign-in forms are short."""

LEAST_RATE: Final = 4 * 1024
"""Bytes in a second; a body that comes more slowly uses up its patience (CONSOLE_BODY_SECONDS)."""

AT_ONCE_BYTES: Final = 512 * 1024 * 1024
"""What all bodies that are being read may hold together, in memory and in temporary files."""

IN_MEMORY_BYTES: Final = 1024 * 1024


class SenderGone(ConnectionError):
    """Whoever sent the body left before its end."""


class TooSlow(SenderGone, RequestAborted):
    """The body came more slowly than it may."""


class BodyTooLong(RequestAborted):
    """The body is longer than the view takes."""


class TooManyBodies(RequestAborted):
    """Too much is being sent at the moment."""


class Patient:
    """A server's `receive` that raises TooSlow when a body keeps it waiting for too long in all.

    Only waiting counts: what is slow because the view is, is not the sender's fault.
    """

    def __init__(self, receive: Callable[[], Awaitable[Any]]) -> None:
        self._receive = receive
        self._left: float = settings.CONSOLE_BODY_SECONDS
        self._whole = False

    async def __call__(self) -> Any:
        if self._whole:
            return await self._receive()  # until whoever asked has left
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            message = await asyncio.wait_for(self._receive(), self._left)
        except TimeoutError as late:
            raise TooSlow from late
        earned = len(message.get("body", b"")) / LEAST_RATE
        self._left = min(settings.CONSOLE_BODY_SECONDS, self._left - (loop.time() - began) + earned)
        self._whole = not message.get("more_body", False)
        return message


class BodyReader:
    """Reads bodies whole; one a process, as it counts what it holds."""

    def __init__(self) -> None:
        self._held = 0

    async def read(self, receive: Callable[[], Awaitable[Any]], most: int, length: int | None) -> IO[bytes]:
        """Return the body.  Raises RequestAborted: TooLarge, TooSlow, Busy, or if the sender left."""
        if length is not None and length > most:
            raise BodyTooLong
        body: IO[bytes] = SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115  # the caller's
        size = 0
        try:
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RequestAborted
                piece = message.get("body", b"")
                size += len(piece)
                self._held += len(piece)
                if size > most:
                    raise BodyTooLong
                if self._held > AT_ONCE_BYTES:
                    raise TooManyBodies
                body.write(piece)
                more = message.get("more_body", False)
        except BaseException:
            body.close()
            raise
        finally:
            self._held -= size
        body.seek(0)
        return body


class Awaiting(HttpResponse):
    """The answer is made once `take` has had the body; until then 202 says that it may come."""

    def __init__(self, take: Take) -> None:
        super().__init__(status=202)
        self.take = take


def takes_body(*methods: str) -> Callable[[View], View]:
    """Mark a view: with these methods it answers `Awaiting`."""

    def mark(view: View) -> View:
        setattr(view, _MARK, frozenset(methods))
        return view

    return mark


def takes_at_most(size: int) -> Callable[[View], View]:
    """Mark a view: a body of so many bytes is read for it, instead of the usual most."""

    def mark(view: View) -> View:
        setattr(view, _MOST, size)
        return view

    return mark


def most_of(view: Any, headers: list[tuple[bytes, bytes]]) -> int:
    """Return how long a body is read for the view from whoever sent the head."""
    known = any(
        name in (b"authorization", b"x-acs-bearer-token")
        or (name == b"cookie" and settings.SESSION_COOKIE_NAME.encode() in value)
        for name, value in headers
    )
    if not known:
        return ANONYMOUS_BYTES
    size: int = getattr(view, _MOST, settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
    return size


def length_of(headers: list[tuple[bytes, bytes]]) -> int | None:
    """Return what Content-Length says; None if nothing."""
    lengths = [value for name, value in headers if name == b"content-length"]
    return int(lengths[0]) if lengths and lengths[0].isdigit() else None


def is_taken(view: Any, method: str) -> bool:
    """Tell whether the view takes the body of such a request itself."""
    return method in getattr(view, _MARK, ())


async def pieces(receive: Callable[[], Awaitable[Any]]) -> AsyncIterator[bytes]:
    """The body as the server brings it.  Raises Gone."""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise SenderGone
        more = message.get("more_body", False)
        if data := message.get("body", b""):
            yield data
