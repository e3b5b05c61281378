"""Run as a program in a job: something quick to reach by the gateway and directly.  Argument: the port."""

from __future__ import annotations

import asyncio
import sys

from aiohttp import web

BLOCK = b"x" * 262_144


async def page(_request: web.Request) -> web.Response:
    return web.Response(body=BLOCK[:2048], content_type="text/html")


async def large(request: web.Request) -> web.StreamResponse:
    left = int(request.match_info["count"])
    response = web.StreamResponse(headers={"Content-Length": str(left)})
    await response.prepare(request)
    while left:
        piece = BLOCK[: min(left, len(BLOCK))]
        await response.write(piece)
        left -= len(piece)
    return response


async def taken(request: web.Request) -> web.Response:
    count = 0
    async for piece in request.content.iter_any():
        count += len(piece)
    return web.Response(text=str(count))


async def echo(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse(compress=False)
    await socket.prepare(request)
    async for message in socket:
        await socket.send_bytes(message.data)
    return socket


async def serve(port: int) -> None:
    served = web.Application(client_max_size=2**31)
    served.router.add_get("/page", page)
    served.router.add_get("/large/{count}", large)
    served.router.add_post("/taken", taken)
    served.router.add_get("/echo", echo)
    runner = web.AppRunner(served, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
