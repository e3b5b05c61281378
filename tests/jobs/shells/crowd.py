"""Run as a program: a crowd that knocks at the SSH gateway, from many addresses, and never says who it is.

Arguments: port, count, addresses.  Prints one JSON object when each has knocked: how many still stand at the
door, and how many were turned away; ends with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter

VERSION = b"SSH-2.0-OpenSSH_9.9\r\n"
KINDS = (b"", VERSION[:7], VERSION, VERSION + b"\x00\x00\x05\xdc" + b"\x14" * 64)
"""Silence, half a line, a handshake that stops, and one that promises more than ever comes."""

SETTLED_SECONDS = 8.0

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


async def stands(reader: asyncio.StreamReader) -> bool:
    """Whether the connection is still open a while later."""
    try:
        async with asyncio.timeout(SETTLED_SECONDS):
            while await reader.read(4096):
                continue
    except TimeoutError:
        return True
    except OSError:
        return False
    return False


async def main() -> None:
    port, count, addresses = (int(word) for word in sys.argv[1:4])
    gate = asyncio.Semaphore(200)
    answers = await asyncio.gather(*(one(number, port, addresses, gate) for number in range(count)))
    standing = await asyncio.gather(*(stands(reader) for reader, _writer in held))
    told = {**Counter(answers), "standing": sum(standing)}
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
