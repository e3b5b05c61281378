"""Transport to a session listener, for where the console can't start a step beside a replica itself.

The console asks the job's own script, which runs as the job's user inside the allocation, to start a
listener, and connects to it.  What the job writes tells only the port and the node; the engine tells the
address of that node, and the listener must have the key that the console gave to this attempt.
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

from jobs.backends.remote import attempts
from jobs.backends.remote.transport import CLOSE_TIMEOUT_S, Classify, Transport
from jobs.backends.sessions import Barrier, NoEntry
from jobs.node.sessions import protocol, tls

POLL_S: Final = 0.1
"""How often the listener's file is read while it starts."""

CONNECT_S: Final = 5.0
RETRY_S: Final = 1.0
"""After so long a listener that did not accept the connection is tried again."""

_VALIDITY: Final = timedelta(days=3650)
_CLOCK_SKEW: Final = timedelta(days=2)
_MAX_COMPLAINT: Final = 4000
_BYE: Final = protocol.encode_json({"bye": True})


@dataclass(frozen=True, slots=True)
class ListenerKeys:
    """The keys of one attempt as PEM: each side's key with its certificate.

    The field names are those of the stored file, as earlier releases wrote it.
    """

    console: str
    console_certificate: str
    door: str
    door_certificate: str


@dataclass(frozen=True, slots=True)
class ListenerFiles:
    """The files by which the console and the job's script agree on a replica's listener.

    `folder` is the attempt's, `run` its run, `name` the replica's name in files, `ports` the first and last
    port it may have, `mode` that of files which the job reads, and `find_address` tells the node's address.
    """

    folder: Path
    run: int
    name: str
    ports: tuple[int, int]
    mode: int
    find_address: Callable[[], str]

    def read_answer(self) -> tuple[int, str] | None:
        """Return the port (0 when closed) and the request that it answers; None before there was any."""
        words = (attempts.read_text(self._listeners / self.name) or "").split()
        if len(words) != 2:
            return None
        port = int(words[0]) if words[0].isdecimal() and len(words[0]) <= 5 else 0
        first, last = self.ports
        return (port if first <= port <= last else 0), words[1]

    def complaint(self) -> str:
        """Return what a listener that could not start has printed."""
        printed = attempts.read_text(self._listeners / f"{self.name}.said") or ""
        return printed.strip()[-_MAX_COMPLAINT:]

    def write_request(self, request: str, command: str) -> None:
        """Ask the script for a listener.  Raises OSError."""
        attempts.write_text(self._request, f"{request} {command}\n", self.mode)

    def is_requested(self) -> bool:
        """Return whether there is a request."""
        return self._request.exists()

    def withdraw(self, request: str) -> None:
        """Remove the request, unless it is another's."""
        if (attempts.read_text(self._request) or "").startswith(f"{request} "):
            self._request.unlink(missing_ok=True)

    def keys(self) -> ListenerKeys:
        """Return the attempt's keys, generated when first needed.  Raises OSError or ValueError."""
        path = self.folder / "door-key"
        if attempts.read_text(path) is None:
            fresh = json.dumps(asdict(generate_keys()))
            if not attempts.create(path, fresh) and attempts.read_text(path) is None:
                attempts.write_text(path, fresh)  # the file there is not the console's
        return ListenerKeys(**json.loads(attempts.read_text(path) or "{}"))

    def write_keys(self, keys: ListenerKeys) -> None:
        """Give the job the listener's side of the keys.  Raises OSError."""
        own = {"own": keys.door, "console": keys.console_certificate}
        attempts.write_text(self.folder / "door", json.dumps(own), self.mode)

    @property
    def _listeners(self) -> Path:
        return self.folder / attempts.run_name(self.run) / "doors"

    @property
    def _request(self) -> Path:
        return self.folder / f"enter-{self.name}"


class ListenerTransport(Transport):
    """A connection to the listener of one replica, which is started first if need be."""

    def __init__(self, files: ListenerFiles, command: str, classify: Classify) -> None:
        super().__init__()
        self._files, self._command, self._classify = files, command, classify
        self._lock = asyncio.Lock()
        self._closed = asyncio.Event()

    async def open(self, timeout_s: float) -> None:
        """See `Transport`."""
        request = secrets.token_hex(8)
        try:
            async with asyncio.timeout(timeout_s):
                self._keys = await asyncio.to_thread(self._files.keys)
                await self._connect(request)
        except TimeoutError as error:
            detail = self._files.complaint() or f"the job's script opened no door within {timeout_s:g} s"
            raise NoEntry(Barrier.ENGINE_AWAY, detail) from error
        except (OSError, ValueError, TypeError, LookupError) as error:
            raise NoEntry(Barrier.FAILED, str(error)) from error
        finally:
            with contextlib.suppress(OSError):
                self._files.withdraw(request)

    async def send(self, data: bytes) -> None:
        """See `Transport`."""
        if self._closed.is_set():
            raise BrokenPipeError
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise BrokenPipeError from error

    async def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """Say goodbye, wait for the listener to close the connection, and close it here."""
        with contextlib.suppress(TimeoutError, BrokenPipeError):
            async with asyncio.timeout(timeout_s):
                await self.send(_BYE)
                while await self._read():
                    pass
        self._closed.set()
        self._writer.transport.abort()

    async def wait_closed(self) -> None:
        """See `Transport`."""
        await self._closed.wait()

    async def _read(self) -> bytes:
        async with self._lock:
            data = b""
            if not self._closed.is_set():
                with contextlib.suppress(OSError):
                    data = await self._reader.read(2 * protocol.CHUNK)
            if not data:
                self._closed.set()
            return data

    async def _failure(self) -> NoEntry:
        return NoEntry(Barrier.FAILED, "the door closed without a word")

    async def _connect(self, request: str) -> None:
        """Connect as soon as there is a listener.  Raises NoEntry."""
        files = self._files
        before = tried = await asyncio.to_thread(files.read_answer)
        if tried is not None and tried[0] and await self._try_port(tried[0]):
            return
        await asyncio.to_thread(files.write_keys, self._keys)
        await asyncio.to_thread(files.write_request, request, self._command)
        requested_at, tried_at = time.monotonic(), float("-inf")
        while True:
            now = time.monotonic()
            if now - requested_at > RETRY_S and not files.is_requested():  # one replaced it and withdrew
                await asyncio.to_thread(files.write_request, request, self._command)
                requested_at = now
            await asyncio.sleep(POLL_S)
            answer = await asyncio.to_thread(files.read_answer)
            if answer is None or (answer == tried and now - tried_at < RETRY_S):
                continue
            port, answered = answer
            if port:
                if await self._try_port(port):
                    return
                tried, tried_at = answer, time.monotonic()
            elif before is None or answered != before[1]:
                complaint = await asyncio.to_thread(files.complaint)
                raise NoEntry(self._classify(complaint), complaint)

    async def _try_port(self, port: int) -> bool:
        """Connect, and return whether the attempt's own listener is there."""
        keys, address = self._keys, await asyncio.to_thread(self._files.find_address)
        if not address:
            raise NoEntry(Barrier.NOT_RUNNING)
        context = tls.console_context(keys.console + keys.console_certificate, keys.door_certificate)
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await asyncio.open_connection(address, port, ssl=context)
        except (OSError, TimeoutError):
            return False
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        try:
            tls.check_certificate(shown, keys.door_certificate)
        except tls.UnknownPeer:
            writer.transport.abort()
            return False
        self._reader, self._writer = reader, writer
        return True


def generate_keys() -> ListenerKeys:
    """Return new keys."""
    (console, console_certificate), (listener, certificate) = _generate("console"), _generate("door")
    return ListenerKeys(console, console_certificate, listener + certificate, certificate)


def _generate(name: str) -> tuple[str, str]:
    """Return a key and its certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _VALIDITY)
        .sign(key, SHA256())
    )
    own = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return own.decode(), certificate.public_bytes(Encoding.PEM).decode()
