"""Terminals, and whose a listening port is, for the web server, by a Unix socket of the console's own user.

The web server has asked who it is and whether they may; here it says whether they may type.  Bytes are the
terminal's; text is JSON: `{"at", "typing"}` before the first bytes and after a gap, `{"ended"}` at the end,
and from the browser `{"columns", "rows"}`.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog
from aiohttp import WSMsgType, web
from django.db import DatabaseError

from jobs.access.entries import Shut
from jobs.access.shells.house import backend_of
from jobs.access.shells.terminals import Shown, Terminals, View
from jobs.backends.base import Handle, TaskRef, Unreachable
from jobs.backends.sessions import Enterable, NoEntry, Size
from jobs.live.threads import aside
from jobs.models import Task

log = structlog.get_logger(__name__)

MOST_TYPED: Final = 1 << 20
MOST_CELLS: Final = 1000


def application(terminals: Terminals) -> web.Application:
    """Serves `/<key>?typing=1&columns=80&rows=24&from=0` as a WebSocket, and `/listeners/…` (`listener`)."""

    async def attach(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(max_msg_size=MOST_TYPED, heartbeat=60, compress=False)
        await socket.prepare(request)
        try:
            shown = await terminals.shown(request.match_info["key"], _size(request.query))
            await _show(socket, shown, request)
        except (Shut, DatabaseError) as error:
            code = error.code if isinstance(error, Shut) else "away"
            await _say(socket, {"ended": code})
        await socket.close()
        return socket

    made = web.Application()
    made.router.add_get("/{key:[0-9a-f]{32}}", attach)
    made.router.add_get("/listeners/{task:[0-9]+}/{host}/{port:[0-9]+}", listener)
    return made


async def listener(request: web.Request) -> web.Response:
    """Say what listens at an address, 404 unless it is that replica's own, 503 where nobody can say."""
    asked = request.match_info
    try:
        backend, handle, task = await aside(_replica, int(asked["task"]))
        found = await backend.listener(handle, task, asked["host"], int(asked["port"]))
    except (Shut, NoEntry) as refused:
        log.info("listener_refused", task=asked["task"], port=asked["port"], why=str(refused))
        raise web.HTTPNotFound from None
    except (DatabaseError, Unreachable, OSError) as error:
        log.warning("listener_unknown", task=asked["task"], problem=repr(error))
        raise web.HTTPServiceUnavailable from None
    return web.Response(text=found)


def _replica(pk: int) -> tuple[Enterable, Handle, TaskRef]:
    task = Task.objects.select_related("attempt__job__cluster").filter(pk=pk).first()
    if task is None:
        raise Shut("not_running")
    return backend_of(task), Handle(task.attempt.handle), TaskRef(task.role, task.index, task.run)


async def serve(terminals: Terminals, path: Path) -> web.AppRunner:
    """Listen on the socket at `path` (0600, the folder is the console's own)."""
    await asyncio.to_thread(path.unlink, missing_ok=True)
    runner = web.AppRunner(application(terminals), access_log=None, handle_signals=False, shutdown_timeout=1)
    await runner.setup()
    await web.UnixSite(runner, str(path)).start()
    await asyncio.to_thread(path.chmod, 0o600)
    return runner


async def _show(socket: web.WebSocketResponse, shown: Shown, request: web.Request) -> None:
    typing = request.query.get("typing") == "1"
    if typing:
        shown.resize(_size(request.query))
    async with shown.looked_at(_number(request.query.get("from", ""), -1)) as view:
        await _say(socket, {"at": view.place, "typing": typing})
        sending = asyncio.ensure_future(_send(socket, shown, view, typing=typing))
        hearing = asyncio.ensure_future(_hear(socket, shown, typing=typing))
        try:
            await asyncio.wait((sending, hearing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, hearing):
                task.cancel()
            await asyncio.gather(sending, hearing, return_exceptions=True)


async def _send(socket: web.WebSocketResponse, shown: Shown, view: View, *, typing: bool) -> None:
    with suppress(ConnectionError):
        while True:
            data, skipped = await shown.more(view)
            if skipped:
                await _say(socket, {"at": view.place, "typing": typing})
            if not data:
                break
            await socket.send_bytes(data)
            shown.seen(view, len(data))
        await _say(socket, {"ended": shown.why})


async def _hear(socket: web.WebSocketResponse, shown: Shown, *, typing: bool) -> None:
    async for message in socket:
        if not typing:
            continue
        if message.type is WSMsgType.BINARY:
            await shown.write(message.data)
        elif message.type is WSMsgType.TEXT:
            with suppress(ValueError, AttributeError):
                shown.resize(_size(json.loads(message.data)))


async def _say(socket: web.WebSocketResponse, what: dict[str, object]) -> None:
    with suppress(ConnectionError):
        await socket.send_str(json.dumps(what))


def _size(told: object) -> Size:
    """A size as somebody tells it, made possible."""
    get = getattr(told, "get", dict[str, object]().get)
    columns, rows = (_number(str(get(name) or ""), 0) for name in ("columns", "rows"))
    return Size(min(columns, MOST_CELLS) or 80, min(rows, MOST_CELLS) or 24)


def _number(text: str, otherwise: int) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else otherwise
