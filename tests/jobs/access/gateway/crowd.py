"""Run as a program: opens a crowd of connections, tells how they were answered, and holds them.

Arguments: port, host, Cookie header, count.  Prints one JSON object when each connection has been answered or
has nothing to wait for; ends with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter

SOCKET = (
    "GET /socket HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\nConnection: Upgrade\r\n"
    "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
EVENTS = "GET /events HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n"
STRANGER = "GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"
UNFINISHED = "GET / HTTP/1.1\r\nHost: {host}\r\n"
KINDS = (SOCKET, EVENTS, STRANGER, UNFINISHED)


async def one(number: int, port: int, host: str, cookie: str, gate: asyncio.Semaphore) -> str:
    kind = KINDS[number % len(KINDS)]
    async with gate:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            held.append(writer)
            writer.write(kind.format(host=host, cookie=cookie).encode())
            if kind is UNFINISHED:
                return "held"
            return (await asyncio.wait_for(reader.readline(), 60)).split()[1].decode()
        except (OSError, IndexError, TimeoutError) as problem:
            return type(problem).__name__


held: list[asyncio.StreamWriter] = []


async def main() -> None:
    port, host, cookie, count = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
    gate = asyncio.Semaphore(500)
    answers = await asyncio.gather(*(one(number, port, host, cookie, gate) for number in range(count)))
    sys.stdout.write(json.dumps(Counter(answers)) + "\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
