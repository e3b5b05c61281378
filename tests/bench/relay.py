"""Run as a program: passes bytes on between one port and another, and does nothing else.  Arguments: both."""

from __future__ import annotations

import asyncio
import sys

import uvloop

PIECE = 262_144


async def serve(port: int, there: int) -> None:
    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", there, limit=PIECE)
        await asyncio.gather(_pass_on(reader, far_writer), _pass_on(far_reader, writer))

    server = await asyncio.start_server(carry, "127.0.0.1", port, limit=PIECE)
    await server.serve_forever()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(PIECE):
        writer.write(data)
        await writer.drain()
    writer.close()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), int(sys.argv[2])))
