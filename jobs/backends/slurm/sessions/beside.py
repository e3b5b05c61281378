"""The node's end of a session: beside a replica, inside the job's allocation.  It talks on stdin and stdout,
which are srun's, or those of a `door`.

    srun
      └ this process        hears what is wanted, finds the replica, carries bytes
          └ leader          sees one session through; looks after all that it starts
              └ the program

When the console is gone, or silent for long, or the replica has ended, all of it ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import socket
import struct
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address
from json import loads
from pathlib import Path
from typing import Any, Final, NoReturn

from jobs.backends.slurm.sessions import wire
from jobs.node import frames, kernel, listening, processes
from jobs.node.command import Command, of_session
from jobs.node.sessions import leader
from jobs.node.sftp.folder_server import serve as serve_folders
from jobs.node.sftp.paths import Root, Site
from jobs.node.sftp.server import serve

SAME_TASK: Final = ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID")
"""By these a process tells of which task of Slurm's it is, unless it hides it."""

TOLD_TO_THE_JOB: Final = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
"""Slurm sends a job's signals to all of its steps; a session stays until the replica has ended by them."""

_SPACES: Final = {"user": kernel.CLONE_NEWUSER, "mnt": kernel.CLONE_NEWNS}

WORK: Final = "work"
_IN, _OUT = 0, 1


class Shut(Exception):
    """There is no way in; `barrier` is one of `jobs.backends.sessions.Barrier`."""

    def __init__(self, barrier: str, detail: str = "") -> None:
        super().__init__(barrier, detail)
        self.barrier, self.detail = barrier, detail


def main() -> NoReturn:
    """Serve one request."""
    for number in TOLD_TO_THE_JOB:
        signal.signal(number, signal.SIG_IGN)
    heard = wire.Heard()
    try:
        request, early = _request(heard)
        if request["kind"] == "reach":
            _say({"at": _reached(request)})
        else:
            _serve(request, heard, early)
    except Shut as error:
        _say({"barrier": error.barrier, "detail": error.detail})
    except (OSError, wire.Broken, KeyError) as error:
        _say({"barrier": "failed", "detail": repr(error)})
    os._exit(0)


def _request(heard: wire.Heard) -> tuple[dict[str, Any], list[tuple[int, bytes]]]:
    """What is wanted, and what came behind it already."""
    while True:
        data = os.read(_IN, wire.PIECE)
        if not data:
            raise wire.Broken("no request")
        found = list(heard.more(data))
        if found:
            return wire.understood(found[0][1]), found[1:]


def _say(what: Mapping[str, Any]) -> None:
    frames.give(_OUT, wire.words(what))


# --- the replica -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Replica:
    """A running one: its task's own process, held, and the environment that its command was given.

    `inner` is its command's process, held, and `spaces` which namespaces of that are not this process' own.
    """

    held: int
    env: Mapping[str, str]
    inner: int
    spaces: int


def find(pid: int) -> Replica:
    """The replica whose task wrote down that it is process `pid` on this node.  Raises Shut."""
    held = processes.hold(pid)
    if held is None or _environment(pid).get("SLURM_JOB_ID") != os.environ["SLURM_JOB_ID"]:
        raise Shut("not_running")
    children = (child for child, parent in processes.parents().items() if parent == pid)
    for child in sorted(children):
        inner = processes.hold(child)
        if inner is not None and (env := _environment(child)):
            return Replica(held, env, inner, _foreign(child))
    raise Shut("not_running")


def _foreign(pid: int) -> int:
    """The namespaces of a process that decide which files there are, as far as they are not mine."""
    flags = 0
    for name, flag in _SPACES.items():
        if Path(f"/proc/{pid}/ns/{name}").stat().st_ino != Path(f"/proc/self/ns/{name}").stat().st_ino:
            flags |= flag
    return flags


def _environment(pid: int) -> dict[str, str]:
    """What the process was started with; empty when it is gone or somebody else's."""
    try:
        pairs = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    split = (pair.partition(b"=") for pair in pairs if b"=" in pair)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in split}


def _pids(replica: Replica) -> Iterator[int]:
    """Every process of the replica, those of sessions beside it too."""
    for pid in processes.numbers():
        about = _environment(pid)
        if about and all(about.get(name) == replica.env.get(name) for name in SAME_TASK):
            yield pid


def _reached(request: Mapping[str, Any]) -> str:
    """The address at which the replica serves that port, as whoever is outside has to call it."""
    replica = find(request["pid"])
    host, port = request["host"], request["port"]
    if not _itself(host, request["names"]):
        raise Shut("not_its_own", host)
    sockets = listening.sockets_of(_pids(replica))
    found = [each.address for each in listening.listeners() if each.port == port and each.inode in sockets]
    if not found:
        raise Shut("not_its_own", f"{host}:{port}")
    return str(min(found, key=lambda at: (at.is_loopback, at.version)))


def _itself(host: str, names: list[str]) -> bool:
    """Whether it is what the replica calls itself."""
    if host.lower() in {"localhost", *names}:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


# --- the session -----------------------------------------------------------------------------------------


def _serve(request: Mapping[str, Any], heard: wire.Heard, early: list[tuple[int, bytes]]) -> None:
    replica = find(request["pid"]) if request["pid"] is not None else None
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    me = os.pidfd_open(os.getpid())
    if os.fork() == 0:
        ours.close()
        _lead(theirs, request, replica, me)
    theirs.close()
    told, files, rest = _first_word(ours)
    _say(told)
    if files:
        _Carrier(ours, rest, files, heard).run(early)


def _lead(
    channel: socket.socket, request: Mapping[str, Any], replica: Replica | None, parent: int
) -> NoReturn:
    """The child that sees the session through; what it has of srun's streams would keep them open.

    What is left of a replica that has ended is over with the parent.
    """
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)
    try:
        if replica is None:
            leader.lead(channel, _left(request), (), parent, None)
        else:
            if replica.spaces:
                kernel.join(replica.inner, replica.spaces)
            leader.lead(channel, _command(request, replica), (), replica.held, request["terminal"])
    except BaseException as error:  # noqa: BLE001 whatever it is, nobody else would tell
        leader.tell(channel, {"barrier": "failed", "detail": f"{type(error).__name__}: {error}"})
    os._exit(0)


def _left(request: Mapping[str, Any]) -> Command:
    """To look at what is left of a replica that has ended."""
    root = Root(WORK, request["label"], os.open(request["folder"], os.O_PATH | os.O_DIRECTORY))
    site = Site((root,))
    return Command((), {}, "/", None, partial(serve_folders, site), site.fds)


def _command(request: Mapping[str, Any], replica: Replica) -> Command:
    """What to run, by whoever sees the files that the replica sees."""
    folder = request["folder"]
    site = Site((Root(WORK, request["label"], base=folder),), live=True)
    served: dict[str, Callable[[], None]] = {"files": serve, "folders": partial(serve_folders, site)}
    return of_session(request, replica.env, folder, None, served)


def _first_word(channel: socket.socket) -> tuple[dict[str, Any], list[int], bytes]:
    """Whether it runs, the descriptors to talk to it, and what came behind."""
    data, files = b"", []
    while b"\n" not in data:
        more, sent, _flags, _address = socket.recv_fds(channel, wire.PIECE, 3)
        files += sent
        if not more:
            raise Shut("failed", "the leader is gone")
        data += more
    line, _, rest = data.partition(b"\n")
    return loads(line), files, rest


@dataclass(slots=True)
class _Stream:
    """One of the program's: which messages carry it, and how much may still be sent."""

    kind: int
    room: int = wire.WINDOW


@dataclass(slots=True)
class _Typed:
    """What is on its way to the program."""

    fd: int
    data: bytearray = field(default_factory=bytearray)
    ended: bool = False


class _Carrier:
    """Carries bytes between the console and the program, until nothing is left of the session."""

    def __init__(self, channel: socket.socket, rest: bytes, files: list[int], heard: wire.Heard) -> None:
        self._channel, self._told, self._heard = channel, rest, heard
        self._terminal = len(files) == 1
        kinds = (wire.OUTPUT,) if self._terminal else (wire.OUTPUT, wire.ERRORS)
        self._streams = dict(zip(files[-len(kinds) :], map(_Stream, kinds), strict=True))
        self._typed = _Typed(os.dup(files[0]) if self._terminal else files[0])
        os.set_blocking(self._typed.fd, False)
        self._led, self._left = True, False

    def run(self, early: list[tuple[int, bytes]]) -> None:
        """To the end."""
        for kind, data in early:
            self._take(kind, data)
        self._tell(b"")
        heard_at = time.monotonic()
        while self._led or self._streams:
            reading = [_IN, *(fd for fd, stream in self._streams.items() if stream.room > 0)]
            if self._led:
                reading.append(self._channel.fileno())
            writing = [self._typed.fd] if self._typed.data else []
            ready, open_, _ = select.select(reading, writing, [], wire.PING_S)
            if _IN in ready:
                heard_at = time.monotonic()
                if not self._hear():
                    break
            if time.monotonic() - heard_at > wire.SILENCE_S:
                break
            for fd in [fd for fd in self._streams if fd in ready]:
                self._carry(fd)
            if open_:
                self._type()
            if self._led and self._channel.fileno() in ready:
                self._led = self._hear_leader()
        self._channel.close()  # which it takes for an order to end all that it has started
        os.wait()

    def _hear(self) -> bool:
        """Whether the console is there."""
        data = os.read(_IN, wire.PIECE)
        for kind, message in self._heard.more(data):
            self._take(kind, message)
        return bool(data) and not self._left

    def _take(self, kind: int, data: bytes) -> None:
        if kind == wire.INPUT:
            self._typed.data += data
            self._typed.ended |= not data
            self._type()
            return
        said = wire.understood(data)
        if "took" in said:
            for stream in self._streams.values():
                stream.room += said["took"] if stream.kind == said["of"] else 0
        elif "columns" in said and self._terminal:
            size = struct.pack("HHHH", said["rows"], said["columns"], 0, 0)
            with contextlib.suppress(OSError):
                fcntl.ioctl(self._typed.fd, termios.TIOCSWINSZ, size)
        elif "bye" in said:
            self._left = True
        elif "signal" in said:
            leader.tell(self._channel, {"signal": str(said["signal"])[:20]})

    def _type(self) -> None:
        """As much as the program takes now."""
        typed, taken = self._typed, 0
        try:
            while typed.data:
                count = os.write(typed.fd, typed.data[: wire.PIECE])
                del typed.data[:count]
                taken += count
        except BlockingIOError:
            pass
        except OSError:
            typed.data.clear()
            typed.ended = True
            _say({"deaf": True})
        if taken:
            _say({"took": taken})
        if typed.ended and not typed.data and not self._terminal and typed.fd >= 0:
            os.close(typed.fd)
            typed.fd = -1

    def _carry(self, fd: int) -> None:
        stream = self._streams[fd]
        try:
            data = os.read(fd, min(wire.PIECE, stream.room))
        except OSError:  # how a terminal's last program shows
            data = b""
        stream.room -= len(data)
        frames.give(_OUT, wire.message(stream.kind, data))
        if not data:
            del self._streams[fd]
            os.close(fd)

    def _hear_leader(self) -> bool:
        """Whether anything is left of what it has started."""
        try:
            more = self._channel.recv(wire.PIECE)
        except OSError:
            more = b""
        self._tell(more)
        return bool(more)

    def _tell(self, more: bytes) -> None:
        """Pass on what the leader said."""
        *lines, self._told = (self._told + more).split(b"\n")
        for line in lines:
            _say(loads(line))
