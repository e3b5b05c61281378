"""What the gateway stands between: a console, something that a job serves, and browsers.

Servers are real and listen on loopback; a `Browser` keeps cookies per host as browsers do, and finds every
host name on this machine as they do for `*.localhost`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from socket import create_connection
from typing import Any, Self

import httpx
import uvicorn
from aiohttp import WSMsgType, web
from django.conf import settings
from django.test import Client
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from console.server.protocol import BoundedHttp
from jobs.models import Endpoint
from quotas.models import User
from tests.waiting import wait_for

CONSOLE = "localhost"


class Served:
    """An ASGI application behind the server that the console uses, in a thread, on a port of its own."""

    def __init__(self, application: Any) -> None:
        config = uvicorn.Config(
            application,
            host="127.0.0.1",
            port=0,
            loop="uvloop",
            http=BoundedHttp,
            ws="websockets-sansio",
            lifespan="on",
            access_log=False,
            log_config=None,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        wait_for(lambda: self._server.started)
        return self

    def __exit__(self, *_problem: object) -> None:
        self._server.should_exit = True
        self._thread.join(60)
        assert not self._thread.is_alive()

    @property
    def port(self) -> int:
        return int(self._server.servers[0].sockets[0].getsockname()[1])


def console() -> Served:
    """The whole console, gateway included."""
    settings.STATIC_ROOT.mkdir(exist_ok=True)
    from console.asgi import application  # noqa: PLC0415  # it reads STATIC_ROOT when it is imported

    return Served(application)


class Job:
    """A web application as a job may serve it; `seen` is every request's method, target and headers."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, list[tuple[str, str]]]] = []
        self.left = threading.Event()
        self.closed_with: int | None = None
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(self, *_problem: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        runner = web.AppRunner(self._application(), handle_signals=False, shutdown_timeout=0.1)
        self._loop.run_until_complete(runner.setup())
        self._loop.run_until_complete(web.TCPSite(runner, "127.0.0.1", 0).start())
        self.port = runner.addresses[0][1]
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()

    def headers(self) -> dict[str, str]:
        """Those of the last request, in lower case."""
        return {name.lower(): value for name, value in self.seen[-1][2]}

    def _application(self) -> web.Application:
        application = web.Application(client_max_size=2**30, middlewares=[self._remember])
        application.router.add_get("/cookie", self._cookie)
        application.router.add_get("/redirect", self._redirect)
        application.router.add_get("/not-modified", self._not_modified)
        application.router.add_get("/page", self._page)
        application.router.add_get("/notebook", self._notebook)
        application.router.add_get("/_static/out/browser/worker.js", self._worker)
        application.router.add_get("/events", self._events)
        application.router.add_get("/bytes/{count}", self._bytes)
        application.router.add_get("/broken", self._broken)
        application.router.add_get("/socket", self._socket)
        application.router.add_post("/length", self._length)
        application.router.add_route("*", "/{rest:.*}", self._echo)
        return application

    @web.middleware
    async def _remember(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        self.seen.append((request.method, request.raw_path, list(request.headers.items())))
        return await handler(request)

    async def _echo(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        return web.Response(body=body or b"hello", headers={"X-Method": request.method})

    async def _length(self, request: web.Request) -> web.StreamResponse:
        total = 0
        async for piece in request.content.iter_any():
            total += len(piece)
        return web.Response(text=str(total))

    async def _cookie(self, request: web.Request) -> web.StreamResponse:
        response = web.Response(text="cookies")
        for value in request.query.getall("set"):
            response.headers.add("Set-Cookie", value)
        return response

    async def _redirect(self, request: web.Request) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": request.query["to"]})

    async def _not_modified(self, request: web.Request) -> web.StreamResponse:
        return web.Response(status=304, headers={"ETag": '"1"', "Content-Length": "12345"})

    async def _page(self, request: web.Request) -> web.StreamResponse:
        return web.Response(
            text="<!DOCTYPE html><title>job</title><h1>served by the job</h1>",
            content_type="text/html",
            headers={"Content-Security-Policy": "default-src 'self'", "Alt-Svc": 'h3=":443"'},
        )

    async def _notebook(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text="<!DOCTYPE html><title>notebook</title>", content_type="text/html")

    async def _worker(self, request: web.Request) -> web.StreamResponse:
        answers = "event.respondWith(new Response('by the worker'))"
        script = f"onfetch = (event) => {{ if (event.request.url.endsWith('/worked')) {answers}; }};"
        claims = "onactivate = (event) => event.waitUntil(clients.claim());"
        return web.Response(
            text=f"{script}\n{claims}",
            content_type="text/javascript",
            headers={"Service-Worker-Allowed": "/"},
        )

    async def _events(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        try:
            await response.write(b"data: first\n\n")
            while True:
                await asyncio.sleep(0.05)
                await response.write(b": still here\n\n")
        finally:
            self.left.set()

    async def _bytes(self, request: web.Request) -> web.StreamResponse:
        left = int(request.match_info["count"])
        response = web.StreamResponse(headers={"Content-Length": str(left)})
        await response.prepare(request)
        while left and request.method != "HEAD":
            piece = b"x" * min(left, 65536)
            await response.write(piece)
            left -= len(piece)
        return response

    async def _broken(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b"only this")
        assert request.transport is not None
        request.transport.abort()
        return response

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=("v1.kernel", "v2.kernel"), max_msg_size=0)
        if request.query.get("refuse"):
            raise web.HTTPForbidden
        await socket.prepare(request)
        async for message in socket:
            if message.type is WSMsgType.TEXT and message.data.startswith("close "):
                await socket.close(code=int(message.data.split()[1]), message=b"as you wish")
            elif message.data == "vanish":
                assert request.transport is not None
                request.transport.abort()
            elif message.type is WSMsgType.TEXT:
                await socket.send_str(message.data)
            elif message.type is WSMsgType.BINARY:
                await socket.send_bytes(message.data)
        self.closed_with = socket.close_code
        self.left.set()
        return socket


class _Everywhere(httpx.HTTPTransport):
    """Every host name leads to this machine."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.url = request.url.copy_with(host="127.0.0.1")
        return super().handle_request(request)


class Browser:
    """A person's browser: cookies stay with the host that set them."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.jar: dict[str, dict[str, str]] = {}
        self._client = httpx.Client(transport=_Everywhere(), timeout=60, trust_env=False)

    def close(self) -> None:
        self._client.close()

    def sign_in(self, user: User) -> str:
        """Have a session of the console's; its key."""
        client = Client()
        client.force_login(user)
        name = settings.SESSION_COOKIE_NAME
        key = client.cookies[name].value
        self.jar.setdefault(CONSOLE, {})[name] = key
        return key

    def cookies(self, host: str) -> dict[str, str]:
        """What it keeps for `host`."""
        return self.jar.setdefault(host, {})

    def host(self, endpoint: Endpoint) -> str:
        return f"{endpoint.slug}.{settings.CONSOLE_APPS_DOMAIN}"

    def request(
        self, method: str, host: str, target: str, headers: dict[str, str] | None = None, **rest: Any
    ) -> httpx.Response:
        """One request, with this host's cookies; redirects are not followed."""
        sent = {"Host": f"{host}:{self.port}", **self._cookie_header(host), **(headers or {})}
        url = httpx.URL(f"http://{host}:{self.port}/")
        extensions = {"target": target.encode()}
        response = self._client.request(method, url, headers=sent, extensions=extensions, **rest)
        self._keep(host, response)
        return response

    def _cookie_header(self, host: str) -> dict[str, str]:
        kept = self.jar.get(host, {})
        return {"Cookie": "; ".join(f"{name}={value}" for name, value in kept.items())} if kept else {}

    def _keep(self, host: str, response: httpx.Response) -> None:
        for line in response.headers.get_list("set-cookie"):
            name, _equals, value = line.partition(";")[0].partition("=")
            self.cookies(host)[name] = value

    @contextmanager
    def socket(
        self, host: str, target: str, headers: dict[str, str] | None = None, **rest: Any
    ) -> Iterator[ClientConnection]:
        """A WebSocket as a page of `host` opens it; raises InvalidStatus when it is refused."""
        where = f"{host}:{self.port}"
        sent = {"Origin": f"http://{where}", **self._cookie_header(host), **(headers or {})}
        origin = sent.pop("Origin")
        with connect(
            f"ws://{where}{target}",
            sock=create_connection(("127.0.0.1", self.port)),
            origin=Origin(origin) if origin else None,
            additional_headers=sent,
            max_size=None,
            **rest,
        ) as socket:
            yield socket

    def socket_status(self, host: str, target: str, headers: dict[str, str] | None = None) -> int:
        """101, or the status with which the handshake is refused."""
        try:
            with self.socket(host, target, headers):
                return 101
        except InvalidStatus as refusal:
            return refusal.response.status_code

    def get(self, host: str, target: str, **headers: str) -> httpx.Response:
        """A person's GET: it wants a page."""
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.request("GET", host, target, {"Accept": "text/html", **told})

    def follow(self, host: str, target: str) -> tuple[httpx.Response, list[str]]:
        """A GET that follows redirects; the last answer, and every address on the way."""
        way: list[str] = []
        for _step in range(10):
            way.append(f"{host}{target}")
            response = self.get(host, target)
            if not response.is_redirect:
                return response, way
            there = httpx.URL(f"http://{host}:{self.port}{target}").join(response.headers["location"])
            host, target = there.host, there.raw_path.decode()
        raise AssertionError(f"too many redirects: {way}")

    def open(self, endpoint: Endpoint, then: str = "") -> httpx.Response:
        """Click the endpoint's link on the job's page."""
        query = f"?next={then}" if then else ""
        return self.follow(CONSOLE, f"/endpoints/{endpoint.slug}/open{query}")[0]
