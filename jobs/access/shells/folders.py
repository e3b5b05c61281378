"""The folders of jobs for the web server, on a Unix socket that only the console's own user can open.

A connection begins with whose it is and about which replica; SFTP with the server there follows, passed on
as it comes, and whether the person still may is asked again and again until it has ended.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import structlog
from django.conf import settings
from django.db import DatabaseError

from jobs.access import entries
from jobs.access.entries import Shut
from jobs.access.gateway.watch import until_first
from jobs.access.shells.house import LONGEST_TRUST_SECONDS, backend_of
from jobs.backends.base import Handle, TaskRef
from jobs.backends.sessions import Barrier, Enterable, Kind, NoEntry, Session, Wanted
from jobs.live.threads import aside
from jobs.models import Task
from jobs.node import frames
from jobs.node import sftp_packets as packets
from quotas.accounts import tokens
from quotas.accounts.sessions import person_of
from quotas.models import User

log = structlog.get_logger(__name__)

ASK_SECONDS: Final = 10.0
READ_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks, a person by their sign-in or by a token of theirs, and about which replica."""

    user: int
    session: str
    token: int
    task: int

    @classmethod
    def load(cls, data: bytes) -> Self:
        """From JSON.  Broken when it is something else."""
        try:
            value = json.loads(data)
            return cls(int(value["user"]), str(value["session"]), int(value["token"]), int(value["task"]))
        except (KeyError, TypeError, ValueError) as error:
            raise frames.Broken("nobody") from error

    def person(self) -> User | None:
        """Who that is now."""
        found = tokens.holder(self.token) if self.token else person_of(self.session)
        return found if found is not None and found.pk == self.user else None


class Transfers:
    """Those under way in this process, in all and of each person."""

    def __init__(self) -> None:
        self._people: Counter[int] = Counter()

    @contextmanager
    def one(self, person: int) -> Iterator[None]:
        """One more of that person's.  Raises Shut."""
        if self._people[person] >= settings.CONSOLE_TRANSFERS_PER_PERSON:
            raise Shut("busy_person")
        if self._people.total() >= settings.CONSOLE_TRANSFERS:
            raise Shut("busy")
        self._people[person] += 1
        try:
            yield
        finally:
            self._people[person] -= 1
            if not self._people[person]:
                del self._people[person]


class _Right:
    """That the visitor still may; without a database for a minute at the most."""

    def __init__(self, visitor: Visitor) -> None:
        self._visitor = visitor
        self._clock = asyncio.get_running_loop().time
        self._known = self._clock()

    async def holds(self) -> bool:
        """Look again."""
        try:
            found = await aside(_find, self._visitor)
        except DatabaseError:
            return self._clock() - self._known < LONGEST_TRUST_SECONDS
        self._known = self._clock()
        return found is not None


class Served:
    """The socket, and whoever is being answered."""

    def __init__(self) -> None:
        self._transfers = Transfers()
        self._server: asyncio.Server | None = None
        self._answering: set[asyncio.Task[None]] = set()

    async def listen(self, path: Path) -> None:
        """On the socket at `path` (0600, the folder is the console's own)."""
        await asyncio.to_thread(path.unlink, missing_ok=True)
        self._server = await asyncio.start_unix_server(self._connected, str(path))
        await asyncio.to_thread(path.chmod, 0o600)

    async def close(self) -> None:
        """Break everything off."""
        if self._server is not None:
            self._server.close()
        for task in self._answering:
            task.cancel()
        await asyncio.gather(*self._answering, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._answer(reader, writer))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _serve(reader, writer, self._transfers)
        except (Shut, DatabaseError) as error:
            code = error.code if isinstance(error, Shut) else "away"
            answer = packets.status(packets.FAILURE, f"{code}: ")
            writer.write(frames.framed(answer[:1] + packets.number(0) + answer[1:]))
        except (frames.Broken, OSError) as error:
            log.info("folders_broke_off", problem=repr(error))
        finally:
            with suppress(OSError):
                writer.close()
                await writer.wait_closed()


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, transfers: Transfers) -> None:
    async with asyncio.timeout(ASK_SECONDS):
        visitor = Visitor.load(await frames.receive(reader))
    task = await aside(_find, visitor)
    if task is None:
        raise Shut("nowhere")
    with transfers.one(visitor.user):
        session = await _begin(await aside(backend_of, task), task)
        try:
            works = [_carry_in(reader, session), _carry_out(session, writer)]
            every = min(float(settings.CONSOLE_GATEWAY_RECHECK_SECONDS), LONGEST_TRUST_SECONDS / 2)
            done = await until_first(works, _Right(visitor).holds, every)
            if done is None:
                log.info("folders_right_lost", user=visitor.user, task=visitor.task)
            elif done.exception() is not None:
                log.info("folders_broke_off", problem=repr(done.exception()))
        finally:
            closing = asyncio.ensure_future(session.close())
            try:
                await asyncio.shield(closing)
            finally:
                await closing  # also when this process ends meanwhile


def _find(visitor: Visitor) -> Task | None:
    """The replica, while that person may enter the job."""
    person = visitor.person()
    task = Task.objects.select_related("attempt__job__cluster").filter(pk=visitor.task).first()
    return task if person is not None and task is not None and entries.may_enter(person, task) else None


async def _begin(backend: Enterable, task: Task) -> Session:
    if not task.attempt.handle:
        raise Shut("not_begun")
    where = TaskRef(task.role, task.index, task.run)
    try:
        return await backend.exec(Handle(task.attempt.handle), where, Wanted(Kind.FOLDERS))
    except NoEntry as error:
        if error.barrier in {Barrier.FAILED, Barrier.LIMITS, Barrier.ENGINE_AWAY}:
            log.warning("folders_failed", barrier=error.barrier, detail=error.detail)
        raise Shut("not_begun" if error.barrier is Barrier.NOT_RUNNING else error.barrier) from error


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
