"""Run as a program: a crowd of SSH connections from many addresses that never authenticate.

Arguments: port, count, addresses.  Prints one JSON object when all have connected: how many are still
open, and how many were refused; ends with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from contextlib import suppress

VERSION = b"SSH-2.0-OpenSSH_9.9\r\n"
KINDS = (b"", VERSION[:7], VERSION, VERSION + b"\x00\x00\x05\xdc" + b"\x14" * 64)
"""Silence, half a line, a handshake that stops, and one that promises more than ever comes."""

SETTLED_SECONDS = 25.0
"""Less than whoever says nothing is given to say who they are: they are not to go by themselves."""

held: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []


async def one(number: int, port: int, addresses: int, gate: asyncio.Semaphore) -> str:
    where = number % addresses
    local = f"127.1.{where // 250}.{where % 250 + 1}"
    async with gate:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(local, 0))
            held.append((reader, writer))
            writer.write(KINDS[number % len(KINDS)])
            await writer.drain()
        except OSError as problem:
            return type(problem).__name__
    return "knocked"


async def closed(reader: asyncio.StreamReader) -> None:
    """Come back when the other end has hung up."""
    with suppress(OSError):
        while await reader.read(4096):
            continue


async def standing(few: int) -> int:
    """How many still stand when only a few do, or when there was time for it."""
    ends = [asyncio.ensure_future(closed(reader)) for reader, _writer in held]
    with suppress(TimeoutError):
        async with asyncio.timeout(SETTLED_SECONDS):
            while sum(not end.done() for end in ends) > few:  # noqa: ASYNC110  # all of them have no event
                await asyncio.sleep(0.2)
    return sum(not end.done() for end in ends)


async def main() -> None:
    port, count, addresses = (int(word) for word in sys.argv[1:4])
    gate = asyncio.Semaphore(200)
    answers = await asyncio.gather(*(one(number, port, addresses, gate) for number in range(count)))
    told = {**Counter(answers), "standing": await standing(count // 40)}
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
