"""The launch agent of MPI jobs: what mpirun calls in place of `rsh`, and what answers in the other replicas.

    agent serve              in a worker: run what the launcher asks for, until the launcher ends
    agent hold PID           in the launcher: wait for the workers, and hold them while that process lives
    agent [-…] NAME WORD…    run a command line in the worker of that name, as `rsh` does

It travels in the job's command, and needs only the standard library.  Beside it lie the attempt's key and the
launcher's lists of hosts.  Whoever connects proves with the key that it belongs to the attempt, and so does
the worker, whose port another user of the machine may have taken.  A command ends with its connection.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO

FOLDER = Path(__file__).parent
HEAD = struct.Struct(">BI")
OUT, ERR, CODE = 1, 2, 3
CHUNK = 1 << 16
LONGEST = 1 << 20  # of a line: a command names all hosts
PATIENCE_S = 10.0  # for whoever has not proved anything yet
KILL_S = 2.0
PAUSE_S = 0.2
LOST = 255  # what rsh and ssh end with when the connection is lost


def sign(*words: str) -> str:
    """Return the proof that whoever says these words has the key."""
    return hmac.new((FOLDER / "key").read_bytes(), "\0".join(words).encode(), hashlib.sha256).hexdigest()


def list_replicas() -> list[tuple[str, str, int, int]]:
    """Return name, address, port and processes of each replica, the launcher first."""
    found = []
    for entry in os.environ["JOB_CONSOLE_MPI_HOSTS"].split(","):
        name, _, rest = entry.partition("=")
        address, port, processes = rest.rsplit(":", 2)
        found.append((name, address, int(port), int(processes)))
    return found


def read_line(stream: IO[bytes]) -> str:
    """Return the next line; raises ConnectionError where there is none that is whole."""
    line = stream.readline(LONGEST)
    if not line.endswith(b"\n"):
        raise ConnectionError("no whole line")
    return line[:-1].decode()


# --- the launcher ----------------------------------------------------------------------------------------


def hold(pid: int) -> None:
    """Write the lists of hosts and return once all workers answer; a process in the background holds them."""
    replicas = list_replicas()
    own = socket.gethostname()  # so that mpirun knows the launcher for the host that it runs on
    named = [(own if at == 0 else name, each) for at, (name, _, _, each) in enumerate(replicas) if each]
    (FOLDER / "hostfile").write_text("".join(f"{name} slots={each}\n" for name, each in named))
    (FOLDER / "machinefile").write_text("".join(f"{name}:{each}\n" for name, each in named))
    streams = [connect(name, address, port, None) for name, address, port, _ in replicas[1:]]
    if os.fork():
        return
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    while Path(f"/proc/{pid}").exists():
        time.sleep(PAUSE_S)
    for stream in streams:
        stream.close()
    shutil.rmtree(FOLDER, ignore_errors=True)


def run(name: str, command: str) -> int:
    """Run a command line in a worker; return its exit code."""
    known = {each: (address, port) for each, address, port, _ in list_replicas()}
    if name not in known:
        sys.stderr.write(f"{name} is no replica of this job.\n")
        return LOST
    with connect(name, *known[name], command) as frames:
        while True:
            head = frames.read(HEAD.size)
            if len(head) < HEAD.size:
                sys.stderr.write(f"The connection to {name} is lost.\n")
                return LOST
            kind, size = HEAD.unpack(head)
            if kind == CODE:
                return int(size)
            stream = sys.stdout.buffer if kind == OUT else sys.stderr.buffer
            stream.write(frames.read(size))
            stream.flush()


def connect(name: str, address: str, port: int, command: str | None) -> IO[bytes]:
    """Return what a worker sends that runs a command, or (None) only lives while this is open.

    A worker may begin later than the launcher; one that never does fails the job by itself.
    """
    announced = time.monotonic() + PATIENCE_S
    while True:
        with contextlib.suppress(OSError), socket.create_connection((address, port), PATIENCE_S) as worker:
            stream = worker.makefile("rb")
            if is_accepted(worker, stream, json.dumps(command)):
                worker.settimeout(None)
                worker.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                return stream  # which keeps the connection open
        if time.monotonic() > announced:
            announced = float("inf")
            sys.stderr.write(f"Waiting for {name}.\n")
            sys.stderr.flush()
        time.sleep(PAUSE_S)


def is_accepted(worker: socket.socket, stream: IO[bytes], request: str) -> bool:
    """Send a request with its proof; return whether the other side has the key too."""
    challenge, nonce = read_line(stream), secrets.token_hex(16)
    message = {"nonce": nonce, "request": request, "proof": sign("request", challenge, nonce, request)}
    worker.sendall(json.dumps(message).encode() + b"\n")
    return hmac.compare_digest(read_line(stream), sign("answer", challenge, nonce))


# --- a worker --------------------------------------------------------------------------------------------


def serve() -> None:
    """Run what the launcher asks for; return when it ends."""
    is_v6 = ":" in os.environ["PAI_CONTAINER_HOST_IP"]
    port = int(os.environ["PAI_CONTAINER_SSH_PORT"])
    server = socket.create_server(("", port), family=socket.AF_INET6 if is_v6 else socket.AF_INET)
    over = threading.Event()
    threading.Thread(target=accept, args=[server, over], daemon=True).start()
    over.wait()
    shutil.rmtree(FOLDER, ignore_errors=True)


def accept(server: socket.socket, over: threading.Event) -> None:
    """Answer every connection."""
    while True:
        connection, _ = server.accept()
        threading.Thread(target=answer, args=[connection, over], daemon=True).start()


def answer(connection: socket.socket, over: threading.Event) -> None:
    """Do what a connection asks for, if it proves that it may."""
    with connection, contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        connection.settimeout(PATIENCE_S)
        command = admit(connection)
        connection.settimeout(None)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if command is not None:
            Command(connection, command).run()
            return
        await_end(connection)
        over.set()


def admit(connection: socket.socket) -> str | None:
    """Return what is asked for; raises ValueError for who has no key."""
    challenge = secrets.token_hex(16)
    connection.sendall(challenge.encode() + b"\n")
    with connection.makefile("rb") as stream:
        message = json.loads(read_line(stream))
    nonce, request = str(message["nonce"]), str(message["request"])
    if not hmac.compare_digest(str(message["proof"]), sign("request", challenge, nonce, request)):
        raise ValueError("no proof")
    connection.sendall(sign("answer", challenge, nonce).encode() + b"\n")
    command = json.loads(request)
    return None if command is None else str(command)


def await_end(connection: socket.socket) -> None:
    """Return when the launcher's side is closed, which writes nothing after its request."""
    with contextlib.suppress(OSError):
        connection.recv(1)


class Command:
    """A command line in a session of its own, whose output goes into a connection."""

    def __init__(self, connection: socket.socket, line: str) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", line],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def run(self) -> None:
        """Send what it writes and its exit code; end it when nobody listens any more."""
        threading.Thread(target=self._watch, daemon=True).start()
        pairs = ((OUT, self._process.stdout), (ERR, self._process.stderr))
        pumps = [threading.Thread(target=self._pump, args=pair, daemon=True) for pair in pairs]
        for pump in pumps:
            pump.start()
        for pump in pumps:
            pump.join()
        code = self._process.wait()
        self._over.set()
        self._send(HEAD.pack(CODE, code if code >= 0 else 128 - code))

    def _pump(self, kind: int, stream: IO[bytes]) -> None:
        while data := os.read(stream.fileno(), CHUNK):
            self._send(HEAD.pack(kind, len(data)) + data)

    def _send(self, data: bytes) -> None:
        with self._lock, contextlib.suppress(OSError):
            self._connection.sendall(data)

    def _watch(self) -> None:
        await_end(self._connection)
        for number, pause in ((signal.SIGTERM, KILL_S), (signal.SIGKILL, 0.0)):
            if self._over.is_set():
                return
            for pid in list_session(self._process.pid):
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
            time.sleep(pause)


def list_session(leader: int) -> list[int]:
    """Return the processes of a session, by their numbers."""
    found = []
    for number in (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()):
        with contextlib.suppress(OSError):
            if os.getsid(number) == leader:
                found.append(number)
    return found


def main(arguments: list[str]) -> int:
    """Do what the first argument says."""
    if arguments == ["serve"]:
        serve()
        return 0
    if arguments[:1] == ["hold"]:
        hold(int(arguments[1]))
        return 0
    while arguments[0].startswith("-"):
        arguments = arguments[1:]
    return run(arguments[0], " ".join(arguments[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
