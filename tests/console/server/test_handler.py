"""Requests under ASGI: one thread for each, kept for the next; streams without one."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.conf import LazySettings
from django.db import connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.urls import path
from django.utils import translation
from django.utils.decorators import sync_and_async_middleware

from console.home import CHECKOUT
from console.server.handler import Handler
from jobs.live.bodies import Awaiting, SenderGone, takes_body

seen: list[tuple[str, str]] = []
"""What ran, and in which thread."""

released = threading.Event()
left = threading.Event()


def _note(what: str) -> None:
    seen.append((what, threading.current_thread().name))


class Outer:
    """A middleware as Django's own are: it blocks."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        _note("before")
        answer = self._get_response(request)
        _note("after")
        return answer


@sync_and_async_middleware
def inner(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """A middleware that would rather be asynchronous, were there a choice."""
    assert not asyncio.iscoroutinefunction(get_response)

    def respond(request: HttpRequest) -> HttpResponseBase:
        _note("inner")
        answer: HttpResponseBase = get_response(request)
        return answer

    return respond


def page(request: HttpRequest) -> HttpResponse:
    _note("view")
    language = translation.get_language()
    if "language" in request.GET:
        translation.activate(request.GET["language"])
    return HttpResponse(f"{request.method} {request.body.decode()} {language}", headers={"X-Made-By": "page"})


def query(request: HttpRequest) -> HttpResponse:
    connection.ensure_connection()
    return HttpResponse(str(id(connection.connection)))


def slow(request: HttpRequest) -> HttpResponse:
    released.wait(60)
    return HttpResponse("slow")


def broken(request: HttpRequest) -> HttpResponse:
    raise ZeroDivisionError


def stream(request: HttpRequest) -> HttpResponseBase:
    async def pieces() -> AsyncIterator[bytes]:
        _note("piece")
        try:
            yield b"one "
            if "endless" in request.GET:
                await asyncio.Event().wait()
            yield b"two"
        finally:
            left.set()

    return StreamingHttpResponse(pieces())


@takes_body("POST")
def upload(request: HttpRequest) -> HttpResponse:
    _note("view")
    if "refused" in request.GET:
        return HttpResponse(status=403)

    async def take(body: AsyncIterator[bytes]) -> HttpResponse:
        try:
            got = [piece async for piece in body]
        finally:
            left.set()
        return HttpResponse(b"|".join(got), status=201)

    return Awaiting(take)


urlpatterns = [
    path("upload", upload),
    path("page", page),
    path("query", query),
    path("slow", slow),
    path("broken", broken),
    path("stream", stream),
]


@pytest.fixture(autouse=True)
def urls(settings: LazySettings) -> Iterator[None]:
    settings.ROOT_URLCONF = __name__
    settings.MIDDLEWARE = [f"{__name__}.Outer", f"{__name__}.inner"]
    settings.CONSOLE_THREADS = 2
    seen.clear()
    released.clear()
    left.clear()
    yield
    released.set()


@pytest.fixture
def handler(urls: None) -> Handler:
    return Handler()


def _asked(handler: Handler, target: str, method: str = "GET") -> Any:
    address, _mark, asked = target.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": address,
        "query_string": asked.encode(),
        "headers": [(b"host", b"localhost")],
    }
    return ApplicationCommunicator(handler, scope)  # type: ignore[no-untyped-call]  # published without types


async def _answer(handler: Handler, target: str, body: bytes = b"") -> tuple[int, bytes]:
    asked = _asked(handler, target, "POST" if body else "GET")
    await asked.send_input({"type": "http.request", "body": body[:3], "more_body": True})
    await asked.send_input({"type": "http.request", "body": body[3:]})
    start = await asked.receive_output(10)
    text, more = b"", True
    while more:
        part = await asked.receive_output(10)
        text, more = text + part.get("body", b""), part.get("more_body", False)
    await asked.wait(60)
    status: int = start["status"]
    return status, text


async def test_request_stays_in_one_thread(handler: Handler) -> None:
    assert await _answer(handler, "/page", b"hello") == (200, b"POST hello en")
    assert [what for what, _thread in seen] == ["before", "inner", "view", "after"]
    [thread] = {thread for _what, thread in seen}
    assert thread.startswith("request")


async def test_stream_is_sent_by_the_event_loop(handler: Handler) -> None:
    await _answer(handler, "/stream")
    threads = dict(seen)
    assert threads["piece"] == threading.current_thread().name
    assert threads["before"] != threads["piece"]


async def test_request_language_does_not_leak_into_the_next(handler: Handler) -> None:
    assert await _answer(handler, "/page?language=ja") == (200, b"GET  en")
    assert await _answer(handler, "/page") == (200, b"GET  en")


@pytest.mark.sqlite  # connections to a server are kept by their pool
@pytest.mark.django_db(transaction=True)
async def test_database_connection_is_reused_by_the_next_request(settings: LazySettings) -> None:
    settings.CONSOLE_THREADS = 1
    handler = Handler()
    one = await _answer(handler, "/query")
    assert one == await _answer(handler, "/query")


async def test_requests_beyond_thread_count_wait_in_turn(handler: Handler) -> None:
    asked = [asyncio.create_task(_answer(handler, "/slow")) for _each in range(5)]
    released.set()
    assert await asyncio.gather(*asked) == [(200, b"slow")] * 5


async def test_open_stream_holds_no_thread(settings: LazySettings) -> None:
    settings.CONSOLE_THREADS = 1
    handler = Handler()
    endless = _asked(handler, "/stream?endless=1")
    await endless.send_input({"type": "http.request"})
    assert (await endless.receive_output(10))["status"] == 200
    assert await _answer(handler, "/page") == (200, b"GET  en")
    await endless.send_input({"type": "http.disconnect"})
    await endless.wait(60)


async def test_stream_is_sent_to_its_end(handler: Handler) -> None:
    assert await _answer(handler, "/stream") == (200, b"one two")


async def test_stream_ends_when_the_client_disconnects(handler: Handler) -> None:
    asked = _asked(handler, "/stream?endless=1")
    await asked.send_input({"type": "http.request"})
    assert (await asked.receive_output(10))["status"] == 200
    assert (await asked.receive_output(10))["body"] == b"one "
    await asked.send_input({"type": "http.disconnect"})
    await asked.wait(60)
    assert left.is_set()


async def test_upload_body_reaches_the_view_in_chunks(handler: Handler) -> None:
    assert await _answer(handler, "/upload", b"hello") == (201, b"hel|lo")
    assert [what for what, _thread in seen] == ["before", "inner", "view", "after"]


async def test_refused_body_is_not_waited_for(handler: Handler) -> None:
    asked = _asked(handler, "/upload?refused=1", "POST")
    assert (await asked.receive_output(10))["status"] == 403
    await asked.receive_output(10)
    await asked.wait(60)


async def test_client_disconnect_in_upload_raises_sender_gone(handler: Handler) -> None:
    asked = _asked(handler, "/upload", "POST")
    await asked.send_input({"type": "http.request", "body": b"hel", "more_body": True})
    await asked.send_input({"type": "http.disconnect"})
    with pytest.raises(SenderGone):
        await asked.wait(60)
    assert left.is_set()


async def test_request_aborted_in_its_body_runs_no_view(handler: Handler) -> None:
    asked = _asked(handler, "/page", "POST")
    await asked.send_input({"type": "http.request", "body": b"hel", "more_body": True})
    await asked.send_input({"type": "http.disconnect"})
    await asked.wait(60)
    assert seen == []


@pytest.mark.parametrize(("target", "status"), [("/nowhere", 404), ("/broken", 500)])
async def test_request_errors_return_their_status(handler: Handler, target: str, status: int) -> None:
    assert (await _answer(handler, target))[0] == status


def test_handler_can_be_imported_before_settings_are_known() -> None:
    environ = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    command = [sys.executable, "-c", "import console.server.handler"]
    done = subprocess.run(command, cwd=CHECKOUT, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
