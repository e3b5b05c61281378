"""The folders of jobs for the web server, on a Unix socket that only the console's own user can open.

A connection begins with whose it is and about which replica; SFTP with the server there follows, passed on
as it comes, and whether the person still may is asked again and again until it has ended.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import structlog
from django.conf import settings
from django.db import DatabaseError

from jobs.access import sessions
from jobs.access.connections import backend_of
from jobs.access.gateway.rechecks import RecheckedRight
from jobs.access.sessions import EntryRefused
from jobs.access.terminal_gateway.session import refusal_of
from jobs.backends.base import Handle, ReplicaRef
from jobs.backends.sessions import Barrier, Enterable, NoEntry, Session, SessionKind, SessionRequest
from jobs.live.limits import EVERYBODY, ConnectionLimit
from jobs.live.thread_pool import run_in_thread
from jobs.models import DatasetCopy, Replica
from jobs.node import frames
from jobs.node import sftp_packets as packets
from quotas.accounts import tokens
from quotas.accounts.sessions import person_of
from quotas.models import User

log = structlog.get_logger(__name__)

ASK_SECONDS: Final = 10.0
READ_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class FolderVisitor:
    """A person, by their sign-in, a token of theirs or a copy that they requested, and a replica."""

    user: int
    session: str
    token: int
    replica: int
    copy: int

    @classmethod
    def load(cls, data: bytes) -> Self:
        """Parse JSON.  Raises frames.Broken."""
        try:
            value = json.loads(data)
            token, replica, copy = (int(value[each]) for each in ("token", "task", "copy"))
            return cls(int(value["user"]), str(value["session"]), token, replica, copy)
        except (KeyError, TypeError, ValueError) as error:
            raise frames.BrokenFrame("nobody") from error

    def person(self) -> User | None:
        """Return the person while their sign-in or token is valid, or their copy under way."""
        if self.copy:
            return self._requester()
        found = tokens.holder(self.token) if self.token else person_of(self.session)
        return found if found is not None and found.pk == self.user else None

    def _requester(self) -> User | None:
        mine = DatasetCopy.objects.filter(
            pk=self.copy, person=self.user, replica=self.replica, state=DatasetCopy.State.COPYING
        )
        return User.objects.filter(pk__in=mine.values("person"), is_active=True).first()


class FolderServer:
    """The socket, and whoever is being answered."""

    def __init__(self) -> None:
        self._transfers = ConnectionLimit()
        self._server: asyncio.Server | None = None
        self._answering: set[asyncio.Task[None]] = set()

    async def listen(self, path: Path) -> None:
        """Listen on the socket at `path` (0600, the folder is the console's own)."""
        await asyncio.to_thread(path.unlink, missing_ok=True)
        self._server = await asyncio.start_unix_server(self._accept, str(path))
        await asyncio.to_thread(path.chmod, 0o600)

    async def close(self) -> None:
        """Break everything off."""
        if self._server is not None:
            self._server.close()
        for task in self._answering:
            task.cancel()
        await asyncio.gather(*self._answering, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._answer(reader, writer))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _serve(reader, writer, self._transfers)
        except (EntryRefused, DatabaseError) as error:
            code = error.code if isinstance(error, EntryRefused) else "away"
            answer = packets.status(packets.FAILURE, f"{code}: ")
            writer.write(frames.encode_frame(answer[:1] + packets.number(0) + answer[1:]))
            await _read_to_end(reader, writer)
        except (frames.BrokenFrame, OSError) as error:
            log.info("folders_broke_off", problem=repr(error))
        finally:
            with suppress(OSError):
                writer.close()
                await writer.wait_closed()


async def _read_to_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read what the client still sends: it would not read the refusal from a connection that is closed."""
    with suppress(OSError, TimeoutError):
        writer.write_eof()
        async with asyncio.timeout(ASK_SECONDS):
            while await reader.read(1 << 16):
                pass


async def _serve(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, transfers: ConnectionLimit
) -> None:
    async with asyncio.timeout(ASK_SECONDS):
        visitor = FolderVisitor.load(await frames.read_frame_async(reader))
    replica = await run_in_thread(_find, visitor)
    if replica is None:
        raise EntryRefused("nowhere")
    with (
        transfers.hold(visitor.user, settings.CONSOLE_TRANSFERS_PER_PERSON, EntryRefused("busy_person")),
        transfers.hold(EVERYBODY, settings.CONSOLE_TRANSFERS, EntryRefused("busy")),
    ):
        session = await _begin(await run_in_thread(backend_of, replica), replica)
        try:
            right = RecheckedRight[Replica | None](replica, lambda: run_in_thread(_find, visitor))
            done = await right.until_first([_carry_in(reader, session), _carry_out(session, writer)])
            if done is None:
                log.info("folders_right_lost", user=visitor.user, replica=visitor.replica)
            elif done.exception() is not None:
                log.info("folders_broke_off", problem=repr(done.exception()))
        finally:
            closing = asyncio.ensure_future(session.close())
            try:
                await asyncio.shield(closing)
            finally:
                await closing  # also when this process ends meanwhile


def _find(visitor: FolderVisitor) -> Replica | None:
    """The replica, while that person may enter the job."""
    person = visitor.person()
    replica = Replica.objects.select_related("attempt__job__cluster").filter(pk=visitor.replica).first()
    return (
        replica
        if person is not None and replica is not None and sessions.may_enter(person, replica)
        else None
    )


async def _begin(backend: Enterable, replica: Replica) -> Session:
    if not replica.attempt.handle:
        raise EntryRefused("not_begun")
    where = ReplicaRef(replica.role, replica.index, replica.run)
    try:
        return await backend.exec(Handle(replica.attempt.handle), where, SessionRequest(SessionKind.FOLDERS))
    except NoEntry as error:
        raise (
            EntryRefused("not_begun") if error.barrier is Barrier.NOT_RUNNING else refusal_of(error)
        ) from error


async def _carry_in(reader: asyncio.StreamReader, session: Session) -> None:
    """Until the web server is gone; it keeps the connection for as long as somebody wants the answer.

    What the far side has refused is taken all the same: its answer, which is on its way, says why.
    """
    while data := await reader.read(READ_BYTES):
        with suppress(BrokenPipeError):
            await session.write(data)


async def _carry_out(session: Session, writer: asyncio.StreamWriter) -> None:
    while data := await session.read(READ_BYTES):
        writer.write(data)
        await writer.drain()
