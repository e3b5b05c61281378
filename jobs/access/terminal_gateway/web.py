"""Terminals, for the web server, by a Unix socket of the console's own user.

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

from aiohttp import WSMsgType, web
from django.db import DatabaseError

from jobs.access.sessions import EntryRefused
from jobs.access.terminal_gateway.terminals import SharedTerminal, Terminals, View
from jobs.backends.sessions import Size

MOST_TYPED: Final = 1 << 20
MOST_CELLS: Final = 1000


def application(terminals: Terminals) -> web.Application:
    """Serves `/<key>?typing=1&columns=80&rows=24&from=0` as a WebSocket."""

    async def attach(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(max_msg_size=MOST_TYPED, heartbeat=60, compress=False)
        await socket.prepare(request)
        try:
            terminal = await terminals.find_or_begin(request.match_info["key"], _size(request.query))
            await _serve_viewer(socket, terminal, request)
        except (EntryRefused, DatabaseError) as error:
            code = error.code if isinstance(error, EntryRefused) else "away"
            await _send_json(socket, {"ended": code})
        await socket.close()
        return socket

    app = web.Application()
    app.router.add_get("/{key:[0-9a-f]{32}}", attach)
    return app


async def serve(terminals: Terminals, path: Path) -> web.AppRunner:
    """Listen on the socket at `path` (0600, the folder is the console's own)."""
    await asyncio.to_thread(path.unlink, missing_ok=True)
    runner = web.AppRunner(application(terminals), access_log=None, handle_signals=False, shutdown_timeout=1)
    await runner.setup()
    await web.UnixSite(runner, str(path)).start()
    await asyncio.to_thread(path.chmod, 0o600)
    return runner


async def _serve_viewer(
    socket: web.WebSocketResponse, terminal: SharedTerminal, request: web.Request
) -> None:
    typing = request.query.get("typing") == "1"
    if typing:
        terminal.resize(_size(request.query))
    async with terminal.add_viewer(_number(request.query.get("from", ""), -1)) as view:
        await _send_json(socket, {"at": view.place, "typing": typing})
        sending = asyncio.ensure_future(_send(socket, terminal, view, typing=typing))
        receiving = asyncio.ensure_future(_receive(socket, terminal, typing=typing))
        try:
            await asyncio.wait((sending, receiving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, receiving):
                task.cancel()
            await asyncio.gather(sending, receiving, return_exceptions=True)


async def _send(socket: web.WebSocketResponse, terminal: SharedTerminal, view: View, *, typing: bool) -> None:
    with suppress(ConnectionError):
        while True:
            data, skipped = await terminal.more(view)
            if skipped:
                await _send_json(socket, {"at": view.place, "typing": typing})
            if not data:
                break
            await socket.send_bytes(data)
            terminal.mark_seen(view, len(data))
        await _send_json(socket, {"ended": terminal.why})


async def _receive(socket: web.WebSocketResponse, terminal: SharedTerminal, *, typing: bool) -> None:
    async for message in socket:
        if not typing:
            continue
        if message.type is WSMsgType.BINARY:
            await terminal.write(message.data)
        elif message.type is WSMsgType.TEXT:
            with suppress(ValueError, AttributeError):
                terminal.resize(_size(json.loads(message.data)))


async def _send_json(socket: web.WebSocketResponse, message: dict[str, object]) -> None:
    with suppress(ConnectionError):
        await socket.send_str(json.dumps(message))


def _size(value: object) -> Size:
    """Read a size; replace what is missing or impossible."""
    get = getattr(value, "get", dict[str, object]().get)
    columns, rows = (_number(str(get(name) or ""), 0) for name in ("columns", "rows"))
    return Size(min(columns, MOST_CELLS) or 80, min(rows, MOST_CELLS) or 24)


def _number(text: str, default: int) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else default
