"""Something run beside a live replica, on whatever bench."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

from jobs.access.folders.client import FolderClient
from jobs.backends.base import Handle, ReplicaRef
from jobs.backends.sessions import Ended, Enterable, Session, SessionKind, SessionRequest
from jobs.spec import Resources
from tests.jobs.backends.benches import Bench, log_of, role
from tests.waiting import wait_for

REPLICA = ReplicaRef("worker", 0)
ROOM = Resources(cpu_milli=1000, memory_mib=256)


def enterable(bench: Bench) -> Enterable:
    """Its backend, which lets people in."""
    assert isinstance(bench.backend, Enterable)
    return bench.backend


def start(bench: Bench, command: str = "echo up; exec sleep 600", **more: Any) -> Handle:
    """A job that has said something."""
    handle = bench.backend.submit(bench.submission(role(command, **{"resources": ROOM, **more})))
    wait_for(lambda: log_of(bench.backend, handle), 60)
    return handle


@asynccontextmanager
async def beside(bench: Bench, handle: Handle, wanted: SessionRequest) -> AsyncIterator[Session]:
    """A session, closed in the end."""
    session = await enterable(bench).exec(handle, REPLICA, wanted)
    try:
        yield session
    finally:
        await session.close()


@asynccontextmanager
async def folder_client(bench: Bench, handle: Handle) -> AsyncIterator[FolderClient]:
    """A client of what serves the replica's folders, for a thread until it streams."""
    async with beside(bench, handle, SessionRequest(SessionKind.FOLDERS)) as session:
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        reader, writer = await asyncio.open_unix_connection(sock=theirs)
        carrying = asyncio.gather(carry_in(reader, session), carry_out(session, writer))
        try:
            with ours:
                yield await asyncio.to_thread(FolderClient, ours)
        finally:
            carrying.cancel()
            await asyncio.gather(carrying, return_exceptions=True)
            writer.transport.abort()


async def carry_in(reader: asyncio.StreamReader, session: Session) -> None:
    """Pass on what is read to a session."""
    while data := await reader.read(65536):
        with suppress(BrokenPipeError):
            await session.write(data)
    await session.write_eof()


async def carry_out(session: Session, writer: asyncio.StreamWriter) -> None:
    """Pass on what a session says."""
    while data := await session.read(65536):
        writer.write(data)
        await writer.drain()
    assert await session.read_error(65536) == b""
    writer.close()


async def list_files(bench: Bench, handle: Handle) -> list[str]:
    """The names in its working folder.  Raises NoEntry."""
    async with folder_client(bench, handle) as client:
        page = partial(client.look, ["work"], "name", 0, 200, down=False)
        found = await asyncio.to_thread(page)
        assert isinstance(found, Mapping)
        return [row["name"] for row in found["rows"]]


async def everything(session: Session) -> str:
    """What it says to its end."""
    said = b""
    while more := await session.read(65536):
        said += more
    return said.decode()


async def until(session: Session, text: str) -> str:
    """What it says up to and with `text`."""
    said = ""
    async with asyncio.timeout(60):
        while text not in said:
            more = await session.read(65536)
            assert more, said
            said += more.decode()
    return said


async def run(bench: Bench, handle: Handle, line: str, **more: Any) -> tuple[str, Ended]:
    """What a line says, and how it ended."""
    async with beside(bench, handle, SessionRequest(SessionKind.LINE, line=line, **more)) as session:
        return await everything(session), await session.wait()


LISTEN = (
    "import socket, time; s = socket.socket({family}); s.bind(('{address}', 0)); s.listen(); "
    "print(s.getsockname()[1], flush=True); time.sleep(600)"
)


def listening(bench: Bench, address: str = "127.0.0.1") -> tuple[Handle, int]:
    """A job that listens, and on which port."""
    family = "socket.AF_INET6" if ":" in address else ""
    handle = start(bench, f'exec python3 -c "{LISTEN.format(family=family, address=address)}"')
    return handle, int(log_of(bench.backend, handle))
