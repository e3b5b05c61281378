"""Requests whose body is not read before the view has said who may send it: a file goes straight through.

Everything else that a request can be is read whole before its view begins (`console.handler`).  A view that
is marked here is called without a body; it decides, from the head alone, and answers `Awaiting`, which takes
the body as it comes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, TypeVar

from django.http import HttpResponse

Take = Callable[[AsyncIterator[bytes]], Awaitable[HttpResponse]]
View = TypeVar("View", bound=Callable[..., Any])

_MARK: Final = "takes_body"


class Gone(ConnectionError):
    """Whoever sent the body left before its end."""


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


def is_taken(view: Any, method: str) -> bool:
    """Whether the view takes the body of such a request itself."""
    return method in getattr(view, _MARK, ())


async def pieces(receive: Callable[[], Awaitable[Any]]) -> AsyncIterator[bytes]:
    """The body as the server brings it.  Raises Gone."""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        more = message.get("more_body", False)
        if data := message.get("body", b""):
            yield data
