"""The console's end of a session by a `door`: where it can't begin a step beside a replica itself.

It asks the job's own script, which runs as the job's user inside the allocation, to open one, and connects to
it.  What the job writes says only on which port that is, and on which node; where that node is, is Slurm's
word, and whoever listens there has to have the key that the console gave to this attempt.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from jobs.backends.sessions import Barrier, NoEntry
from jobs.backends.slurm.script import layout
from jobs.backends.slurm.sessions import tls, wire
from jobs.backends.slurm.sessions.line import END_S, Line, why

LOOK_S: Final = 0.1
"""How often it is looked whether a door is open."""

CONNECT_S: Final = 5.0
AGAIN_S: Final = 1.0
"""After so long a door that did not let us in is tried again."""

_VALID: Final = timedelta(days=3650)
_SKEW: Final = timedelta(days=2)
_SAID: Final = 4000
_BYE: Final = wire.words({"bye": True})


@dataclass(frozen=True, slots=True)
class Keys:
    """Of one attempt, as PEM: a key with its certificate for each side."""

    console: str
    console_certificate: str
    door: str
    door_certificate: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a replica's door is: its attempt's folder, its run, its name in files, where ports may be, the
    mode of files that the job is to read, and what tells a node's address.
    """

    folder: Path
    run: int
    name: str
    ports: tuple[int, int]
    mode: int
    where: Callable[[], str]

    def said(self) -> tuple[int, str] | None:
        """Which port, 0 for a door that has closed, and by which request; None before there was any."""
        words = (layout.text(self._doors / self.name) or "").split()
        if len(words) != 2:
            return None
        port = int(words[0]) if words[0].isdecimal() and len(words[0]) <= 5 else 0
        first, last = self.ports
        return (port if first <= port <= last else 0), words[1]

    def complaint(self) -> str:
        """What was said by what should have been a door."""
        return (layout.text(self._doors / f"{self.name}.said") or "").strip()[-_SAID:]

    def ask(self, which: str, what: str) -> None:
        """Ask for one.  OSError."""
        layout.put(self._request, f"{which} {what}\n", self.mode)

    def is_asked(self) -> bool:
        """Whether the request is there."""
        return self._request.exists()

    def unask(self, which: str) -> None:
        """Take the request back, unless it is another's."""
        if (layout.text(self._request) or "").startswith(f"{which} "):
            self._request.unlink(missing_ok=True)

    def keys(self) -> Keys:
        """The attempt's; made when they are first needed.  OSError or ValueError."""
        path = self.folder / "door-key"
        if layout.text(path) is None:
            fresh = json.dumps(asdict(made()))
            if not layout.publish(path, fresh) and layout.text(path) is None:
                layout.put(path, fresh)  # what lay there was none of the console's
        return Keys(**json.loads(layout.text(path) or "{}"))

    def give(self, keys: Keys) -> None:
        """Let the job have its side of them.  OSError."""
        own = {"own": keys.door, "console": keys.console_certificate}
        layout.put(self.folder / "door", json.dumps(own), self.mode)

    @property
    def _doors(self) -> Path:
        return self.folder / layout.run_folder(self.run) / "doors"

    @property
    def _request(self) -> Path:
        return self.folder / f"enter-{self.name}"


class Door(Line):
    """A connection to the door of one replica, which is opened first if need be."""

    def __init__(self, place: Place, command: str) -> None:
        super().__init__()
        self._place, self._command = place, command
        self._turn = asyncio.Lock()
        self._over = asyncio.Event()
        self._gone = False

    async def open(self, patience_s: float) -> None:
        """See `Line`."""
        which = secrets.token_hex(8)
        try:
            async with asyncio.timeout(patience_s):
                self._keys = await asyncio.to_thread(self._place.keys)
                await self._opened(which)
        except TimeoutError as error:
            detail = self._place.complaint() or f"the job's script opened no door within {patience_s:g} s"
            raise NoEntry(Barrier.ENGINE_AWAY, detail) from error
        except (OSError, ValueError, TypeError, LookupError) as error:
            raise NoEntry(Barrier.FAILED, str(error)) from error
        finally:
            with contextlib.suppress(OSError):
                self._place.unask(which)

    async def say(self, data: bytes) -> None:
        """See `Line`."""
        if self._gone:
            raise BrokenPipeError
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise BrokenPipeError from error

    async def end(self, patience_s: float = END_S) -> None:
        """Say goodbye, and wait for the other side to go; then, or after so long, hang up."""
        with contextlib.suppress(TimeoutError, BrokenPipeError):
            async with asyncio.timeout(patience_s):
                await self.say(_BYE)
                while await self._read():
                    pass
        self._gone = True
        self._over.set()
        self._writer.transport.abort()

    async def over(self) -> None:
        """See `Line`."""
        await self._over.wait()

    async def _read(self) -> bytes:
        async with self._turn:
            data = b""
            if not self._gone:
                with contextlib.suppress(OSError):
                    data = await self._reader.read(2 * wire.PIECE)
            if not data:
                self._gone = True
                self._over.set()
            return data

    async def _why(self) -> NoEntry:
        return NoEntry(Barrier.FAILED, "the door closed without a word")

    async def _opened(self, which: str) -> None:
        """Connect, as soon as there is something to connect to.  Raises NoEntry."""
        place = self._place
        before = tried = await asyncio.to_thread(place.said)
        if tried is not None and tried[0] and await self._connected(tried[0]):
            return
        await asyncio.to_thread(place.give, self._keys)
        await asyncio.to_thread(place.ask, which, self._command)
        asked_at, tried_at = time.monotonic(), float("-inf")
        while True:
            now = time.monotonic()
            if now - asked_at > AGAIN_S and not place.is_asked():  # another's in its place, who has got in
                await asyncio.to_thread(place.ask, which, self._command)
                asked_at = now
            await asyncio.sleep(LOOK_S)
            said = await asyncio.to_thread(place.said)
            if said is None or (said == tried and now - tried_at < AGAIN_S):
                continue
            port, answered = said
            if port:
                if await self._connected(port):
                    return
                tried, tried_at = said, time.monotonic()
            elif before is None or answered != before[1]:
                complaint = await asyncio.to_thread(place.complaint)
                raise NoEntry(why(complaint), complaint)

    async def _connected(self, port: int) -> bool:
        """Whether the right one listens there."""
        keys, address = self._keys, await asyncio.to_thread(self._place.where)
        if not address:
            raise NoEntry(Barrier.NOT_RUNNING)
        context = tls.console(keys.console + keys.console_certificate, keys.door_certificate)
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await asyncio.open_connection(address, port, ssl=context)
        except (OSError, TimeoutError):
            return False
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        try:
            tls.check(shown, keys.door_certificate)
        except tls.Stranger:
            writer.transport.abort()
            return False
        self._reader, self._writer = reader, writer
        return True


def made() -> Keys:
    """New ones."""
    (console, ours), (door, theirs) = _pair("console"), _pair("door")
    return Keys(console, ours, door + theirs, theirs)


def _pair(name: str) -> tuple[str, str]:
    """A key and its certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    called = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(called)
        .issuer_name(called)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _VALID)
        .sign(key, SHA256())
    )
    own = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return own.decode(), certificate.public_bytes(Encoding.PEM).decode()
