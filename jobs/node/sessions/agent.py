"""The session agent: runs one session beside a replica, inside the job's allocation.

It talks to the console on stdin and stdout, which are srun's or those of a session listener.

    srun
      └ this process        reads the request, finds the replica, relays the streams
          └ leader          runs the session and reaps all that it starts
              └ the program

All of it ends when the console is gone or silent for long, and when the replica ends.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from json import loads
from pathlib import Path
from typing import Any, Final, NoReturn

from jobs.node import frames, kernel, listening_sockets, marks, processes
from jobs.node.command import Command, session_command
from jobs.node.listening_sockets import is_loopback
from jobs.node.sessions import leader, protocol
from jobs.node.sftp.folder_server import serve as serve_folders
from jobs.node.sftp.paths import BrowsableFolders, BrowsableRoot
from jobs.node.sftp.server import serve


@dataclass(frozen=True, slots=True)
class ProcessMarks:
    """The environment variables that tell a process's replica, unless it hides them.

    `job` is the same in the replica's process and here, `replica` is in the command's, and `all_of` are equal
    in all processes of a replica.  The command is `depth` generations below the replica's process.
    """

    job: str
    replica: str
    all_of: tuple[str, ...]
    depth: int


SLURM: Final = ProcessMarks(
    "SLURM_JOB_ID", "SLURM_PROCID", ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID"), 1
)
RUNNER: Final = ProcessMarks(marks.RUNNER, marks.REPLICA, (marks.REPLICA,), 2)
"""Of replicas that `jobs.node.supervisor.replica_runner` runs: between it and the command is a wrapper."""

JOB_SIGNALS: Final = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
"""Slurm sends a job's signals to all of its steps; a session stays until the replica has ended."""

_NAMESPACES: Final = {"user": kernel.CLONE_NEWUSER, "mnt": kernel.CLONE_NEWNS}

WORK: Final = "work"
_IN, _OUT = 0, 1


class NoAccess(Exception):
    """The session can't be started; `barrier` is one of `jobs.backends.sessions.Barrier`."""

    def __init__(self, barrier: str, detail: str = "") -> None:
        super().__init__(barrier, detail)
        self.barrier, self.detail = barrier, detail


def main() -> NoReturn:
    """Serve one request."""
    for number in JOB_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    messages = protocol.MessageReader()
    try:
        request, early = _request(messages)
        if request["kind"] == "reach":
            _answer_reaches(request, messages, early)
        else:
            _run_session(request, messages, early)
    except NoAccess as error:
        _send({"barrier": error.barrier, "detail": error.detail})
    except (OSError, protocol.ProtocolError, KeyError) as error:
        _send({"barrier": "failed", "detail": repr(error)})
    os._exit(0)


def _request(messages: protocol.MessageReader) -> tuple[dict[str, Any], list[tuple[int, bytes]]]:
    """Return the request, and the messages that came with it."""
    while True:
        data = os.read(_IN, protocol.CHUNK)
        if not data:
            raise protocol.ProtocolError("no request")
        found = list(messages.feed(data))
        if found:
            return protocol.decode_json(found[0][1]), found[1:]


def _send(message: Mapping[str, Any]) -> None:
    frames.write_all(_OUT, protocol.encode_json(message))


# --- the replica -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunningReplica:
    """A running replica.

    `held` is a pidfd of its replica's process, `env` the environment of its command, `inner` a pidfd of the
    command's process, and `spaces` the namespaces of that process which are not the agent's own.
    """

    held: int
    env: Mapping[str, str]
    inner: int
    spaces: int


def find_replica(pid: int) -> RunningReplica:
    """Return the replica whose process on this node is `pid`.  Raises NoAccess.

    Its command is the newest child: what runs beside it (sidecars, the sampler of log times) starts earlier.
    """
    found, held = _marks(), processes.hold(pid)
    if held is None or _environment(pid).get(found.job) != os.environ[found.job]:
        raise NoAccess("not_running")
    parents, generation = processes.parents(), {pid}
    for _ in range(found.depth):
        generation = {child for child, parent in parents.items() if parent in generation}
    for child in sorted(generation, key=lambda child: (processes.start_ticks(child), child), reverse=True):
        inner = processes.hold(child)
        if inner is not None and found.replica in (env := _environment(child)):
            return RunningReplica(held, env, inner, leader.foreign_namespaces(child, _NAMESPACES))
    raise NoAccess("not_running")


def _marks() -> ProcessMarks:
    return RUNNER if RUNNER.job in os.environ else SLURM


def _environment(pid: int) -> dict[str, str]:
    """Return the initial environment of a process; {} when it is gone or another user's."""
    try:
        pairs = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    split = (pair.partition(b"=") for pair in pairs if b"=" in pair)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in split}


def _pids(replica: RunningReplica) -> Iterator[int]:
    """Yield every process of the replica, those of its sessions too."""
    for pid in processes.numbers():
        about = _environment(pid)
        if about and all(about.get(name) == replica.env.get(name) for name in _marks().all_of):
            yield pid


def _answer_reaches(
    request: Mapping[str, Any], messages: protocol.MessageReader, early: list[tuple[int, bytes]]
) -> None:
    """Answer each question about a port, until the console leaves or the replica ends."""
    replica = find_replica(request["pid"])
    questions = [request, *(protocol.decode_json(data) for _kind, data in early)]
    while True:
        for question in questions:
            if "bye" in question:
                return
            try:
                _send(_find_listener(replica, question))
            except NoAccess as error:
                _send({"barrier": error.barrier, "detail": error.detail})
        ready, _, _ = select.select([_IN, replica.held], [], [], protocol.SILENCE_S)
        if ready != [_IN] or not (data := os.read(_IN, protocol.CHUNK)):
            return
        questions = [protocol.decode_json(found) for _kind, found in messages.feed(data)]


def _find_listener(replica: RunningReplica, request: Mapping[str, Any]) -> dict[str, str]:
    """Return the address at which the replica alone accepts connections of the console, and its sockets.

    `request["address"]` is where the console reaches this node; its loopback only from this very machine.
    """
    host, port, here = request["host"], request["port"], request["address"]
    if not _is_own_name(host, request["names"]):
        raise NoAccess("not_its_own", host)
    listeners = listening_sockets.list_listeners_on(port)
    own = listening_sockets.sockets_of(_pids(replica))
    for at in _reached_addresses(listeners, here):
        sockets = {each.inode for each in listening_sockets.accepting_sockets(listeners, at, port)}
        if sockets and sockets <= own:
            return {"at": at, "sockets": " ".join(map(str, sorted(sockets)))}
    raise NoAccess("not_its_own", f"{host}:{port}")


def _reached_addresses(listeners: Sequence[listening_sockets.Listener], here: str) -> Iterator[str]:
    """Yield the addresses to which the console can connect, the node's own first."""
    yield here
    if is_loopback(here):
        yield from (each.reachable_at for each in listeners if is_loopback(each.reachable_at))


def _is_own_name(host: str, names: list[str]) -> bool:
    """Return whether `host` is a name of the replica itself."""
    return host.lower() in names or is_loopback(host)


# --- the session -----------------------------------------------------------------------------------------


def _run_session(
    request: Mapping[str, Any], messages: protocol.MessageReader, early: list[tuple[int, bytes]]
) -> None:
    replica = find_replica(request["pid"]) if request["pid"] is not None else None
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    me = os.pidfd_open(os.getpid())
    if os.fork() == 0:
        ours.close()
        _lead(theirs, request, replica, me)
    theirs.close()
    started, files, rest = _read_start(ours)
    _send(started)
    if files:
        _StreamRelay(ours, rest, files, messages).run(early)


def _lead(
    channel: socket.socket, request: Mapping[str, Any], replica: RunningReplica | None, parent: int
) -> NoReturn:
    """Run the session in this child, without srun's streams, which it would keep open.

    A session in the files of an ended replica ends with the parent.
    """
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)
    try:
        if replica is None:
            leader.lead(channel, _list_remains(request), (), parent, None)
        else:
            if replica.spaces:
                kernel.join(replica.inner, replica.spaces)
            leader.lead(channel, _command(request, replica), (), replica.held, request["terminal"])
    except BaseException as error:  # noqa: BLE001 whatever it is, nobody else would tell
        leader.tell(channel, {"barrier": "failed", "detail": f"{type(error).__name__}: {error}"})
    os._exit(0)


def _list_remains(request: Mapping[str, Any]) -> Command:
    """Return the command that lists the files of an ended replica."""
    root = BrowsableRoot(WORK, request["label"], os.open(request["folder"], os.O_PATH | os.O_DIRECTORY))
    site = BrowsableFolders((root,))
    return Command((), {}, "/", None, partial(serve_folders, site), site.fds)


def _command(request: Mapping[str, Any], replica: RunningReplica) -> Command:
    """Return the requested command; called in the replica's own file system."""
    folder = request["folder"]
    site = BrowsableFolders((BrowsableRoot(WORK, request["label"], base=folder),), live=True)
    served: dict[str, Callable[[], None]] = {"files": serve, "folders": partial(serve_folders, site)}
    return session_command(request, replica.env, folder, None, served)


def _read_start(channel: socket.socket) -> tuple[dict[str, Any], list[int], bytes]:
    """Return the leader's first message, the program's descriptors, and the bytes behind them."""
    data, files = b"", []
    while b"\n" not in data:
        more, sent = kernel.receive(channel, protocol.CHUNK, 3)
        files += sent
        if not more:
            raise NoAccess("failed", "the leader is gone")
        data += more
    line, _, rest = data.partition(b"\n")
    return loads(line), files, rest


@dataclass(slots=True)
class _ProgramStream:
    """An output stream of the program: its message kind, and how much may still be sent."""

    kind: int
    window: int = protocol.WINDOW


@dataclass(slots=True)
class _PendingInput:
    """Input that the program has not read yet."""

    fd: int
    data: bytearray = field(default_factory=bytearray)
    ended: bool = False


class _StreamRelay:
    """Relays the streams between the console and the program until the session is over."""

    def __init__(
        self, channel: socket.socket, rest: bytes, files: list[int], messages: protocol.MessageReader
    ) -> None:
        self._channel, self._partial, self._messages = channel, rest, messages
        self._terminal = len(files) == 1
        kinds = (protocol.STDOUT,) if self._terminal else (protocol.STDOUT, protocol.STDERR)
        self._streams = dict(zip(files[-len(kinds) :], map(_ProgramStream, kinds), strict=True))
        self._input = _PendingInput(os.dup(files[0]) if self._terminal else files[0])
        os.set_blocking(self._input.fd, False)
        self._is_led, self._has_left = True, False

    def run(self, early: list[tuple[int, bytes]]) -> None:
        """Relay until nothing of the session runs any more."""
        for kind, data in early:
            self._take(kind, data)
        self._forward(b"")
        last_message = time.monotonic()
        while self._is_led or self._streams:
            reading = [_IN, *(fd for fd, stream in self._streams.items() if stream.window > 0)]
            if self._is_led:
                reading.append(self._channel.fileno())
            writing = [self._input.fd] if self._input.data else []
            ready, writable, _ = select.select(reading, writing, [], protocol.PING_S)
            if _IN in ready:
                last_message = time.monotonic()
                if not self._read_console():
                    break
            if time.monotonic() - last_message > protocol.SILENCE_S:
                break
            for fd in [fd for fd in self._streams if fd in ready]:
                self._send_output(fd)
            if writable:
                self._write_input()
            if self._is_led and self._channel.fileno() in ready:
                self._is_led = self._read_leader()
        self._channel.close()  # which it takes for an order to end all that it has started
        os.wait()

    def _read_console(self) -> bool:
        """Read from the console; return whether the session goes on."""
        data = os.read(_IN, protocol.CHUNK)
        for kind, message in self._messages.feed(data):
            self._take(kind, message)
        return bool(data) and not self._has_left

    def _take(self, kind: int, data: bytes) -> None:
        if kind == protocol.STDIN:
            self._input.data += data
            self._input.ended |= not data
            self._write_input()
            return
        message = protocol.decode_json(data)
        if "took" in message:
            for stream in self._streams.values():
                stream.window += message["took"] if stream.kind == message["of"] else 0
        elif "columns" in message and self._terminal:
            size = struct.pack("HHHH", message["rows"], message["columns"], 0, 0)
            with contextlib.suppress(OSError):
                fcntl.ioctl(self._input.fd, termios.TIOCSWINSZ, size)
        elif "bye" in message:
            self._has_left = True
        elif "signal" in message:
            leader.tell(self._channel, {"signal": str(message["signal"])[:20]})

    def _write_input(self) -> None:
        """Write as much input as the program takes now."""
        pending, written = self._input, 0
        try:
            while pending.data:
                count = os.write(pending.fd, pending.data[: protocol.CHUNK])
                del pending.data[:count]
                written += count
        except BlockingIOError:
            pass
        except OSError:
            pending.data.clear()
            pending.ended = True
            _send({"deaf": True})
        if written:
            _send({"took": written})
        if pending.ended and not pending.data and not self._terminal and pending.fd >= 0:
            os.close(pending.fd)
            pending.fd = -1

    def _send_output(self, fd: int) -> None:
        stream = self._streams[fd]
        try:
            data = os.read(fd, min(protocol.CHUNK, stream.window))
        except OSError:  # how a terminal's last program shows
            data = b""
        stream.window -= len(data)
        frames.write_all(_OUT, protocol.encode(stream.kind, data))
        if not data:
            del self._streams[fd]
            os.close(fd)

    def _read_leader(self) -> bool:
        """Read from the leader; return whether it still runs."""
        try:
            more = self._channel.recv(protocol.CHUNK)
        except OSError:
            more = b""
        self._forward(more)
        return bool(more)

    def _forward(self, more: bytes) -> None:
        """Send the leader's messages to the console."""
        *lines, self._partial = (self._partial + more).split(b"\n")
        for line in lines:
            _send(loads(line))
