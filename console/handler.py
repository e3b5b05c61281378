"""Django under ASGI, with one change of thread for a request instead of one for each middleware.

Django's own handler walks through the middleware in the event loop and goes to a thread and back for each
that is not asynchronous, to a new thread for every request, in which the database is opened anew.  Here a
request for a blocking view, and that is nearly all of them, is handled from its first line to its last in
one of a few threads that stay and keep their connections.  What is asynchronous (streams) goes Django's way.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from io import BytesIO
from typing import Any, cast

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, ASGIRequest, get_script_prefix
from django.core.handlers.base import BaseHandler
from django.db import close_old_connections
from django.http import HttpResponse, HttpResponseBase
from django.urls import Resolver404, resolve, set_script_prefix

from jobs.live import bodies


class _Blocking(BaseHandler):
    """The middleware and the views, as functions."""

    def __init__(self) -> None:
        super().__init__()
        self.load_middleware()


class Handler(ASGIHandler):
    """The ASGI application of everything that is Django's."""

    def __init__(self) -> None:
        super().__init__()
        self._blocking = _Blocking()
        self._threads = ThreadPoolExecutor(settings.CONSOLE_THREADS, thread_name_prefix="request")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        view = _view(scope["path"]) if scope["type"] == "http" else None
        if scope["type"] != "http" or iscoroutinefunction(view):
            await super().__call__(scope, receive, send)
            return
        try:
            body = BytesIO() if bodies.is_taken(view, scope["method"]) else await self.read_body(receive)
        except RequestAborted:
            return
        loop = asyncio.get_running_loop()
        context = copy_context()  # the language and the time zone are the request's, not the thread's
        with body:
            response = await loop.run_in_executor(self._threads, context.run, self._respond, scope, body)
            if isinstance(response, bodies.Awaiting):
                await loop.create_task(self._take(response, receive, send), context=context)
                return
            if not response.streaming:
                await self.send_response(response, send)
                return
            try:
                await loop.create_task(self._stream(response, receive, send), context=context)
            finally:
                await loop.run_in_executor(self._threads, context.run, response.close)

    def _respond(self, scope: Any, body: Any) -> HttpResponseBase:
        """The whole answer, or one that is yet to be streamed; in a thread."""
        set_script_prefix(get_script_prefix(scope))
        signals.request_started.send(sender=self.__class__, scope=scope)
        request, error = cast("tuple[ASGIRequest | None, HttpResponse]", self.create_request(scope, body))
        response = self._blocking.get_response(request) if request is not None else error
        if response.streaming:
            close_old_connections()
        else:
            response.close()
        return response

    async def _take(self, response: bodies.Awaiting, receive: Any, send: Any) -> None:
        """Give the body to the view that wants it, as it comes, and send what it makes of it."""
        made = await response.take(bodies.pieces(receive))
        for name, value in response.headers.items():  # what the middleware has to say
            if name not in ("Content-Type", "Content-Length"):
                made.headers.setdefault(name, value)
        await self.send_response(made, send)

    async def _stream(self, response: HttpResponseBase, receive: Any, send: Any) -> None:
        """Send until the end, or until nobody listens."""
        sending = asyncio.create_task(self.send_response(response, send))
        leaving = asyncio.create_task(self.listen_for_disconnect(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)


def _view(path: str) -> Any:
    try:
        return resolve(path).func
    except Resolver404:
        return None
