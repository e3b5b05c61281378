"""Launcher of a replica of a Ray job, run by the Python that the job finds: `python3 -I -S -c THIS SETTINGS`.

The first replica starts Ray's head, lets the others join one after the other (two Ray nodes that start at the
same time on a small machine exceed Ray's own time-out of 30 s), and submits the job's command once, by Ray's
job API.  The command's end is the job's end: the others are told over their connections to the head and end
with code 0.  Everything of a replica ends with its launcher.

Ray chooses free ports itself.  The head is found at `MASTER_ADDR`:`MASTER_PORT`, where this program listens;
the attempt's token opens these connections and, with Ray's token authentication (2.52 and later), Ray itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import hmac
import http.client
import json
import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = "JOB_CONSOLE_ENDPOINT_TOKEN"  # noqa: S105 the variable's name
DASHBOARD = "ray-dashboard"
COOKIE = "ray-authentication-token"
"""Ray's name for the cookie with its token."""

TERMINATED = 128 + signal.SIGTERM
JOIN_S = 600.0
"""How long the head waits for replicas that still prepare, and these for the head."""

START_S = 180.0
STOP_S = 10.0
SILENT_S = 60.0
"""How long Ray's job API may give no answer."""

POLL_S = 0.2
LINE_BYTES = 4096
LEAST_STORE_BYTES = 80_000_000
"""Ray refuses an object store of less than 75 MiB."""

STORE_PERCENT = 30
"""Ray's own default, of the node's memory."""

LOOPBACK = "127.0.0.2"
"""Ray replaces 127.0.0.1 by another address of the machine."""

_UP = "Ray runtime started"
_REAP_S = 0.02
_PR_SET_CHILD_SUBREAPER = 36
_TOKEN_SINCE = (2, 52)
_PACKAGES = re.compile(r"""(?m)(?:^|[{,])\s*["']?(?:pip|uv|conda)["']?\s*:""")
"""Keys of a runtime environment, in YAML or JSON, that name packages."""

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_IGNORED = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""Warnings are for the job's command: they would end Ray's processes."""

_DRIVER = """\
import os, signal
for number in {numbers}:
    signal.signal(number, signal.SIG_DFL)
os.execv("/bin/bash", ["bash", "-c", {command!r}])
"""


class ReplicaEnd(Exception):
    """The replica ends; carries its exit code, and a sentence for its log or ""."""

    def __init__(self, code: int, why: str = "") -> None:
        super().__init__(why)
        self.code = code


@dataclass(frozen=True)
class Settings:
    """`command` is the job's, `replicas` how many Ray nodes it has; the amounts are this replica's.

    `object_store_bytes` 0 leaves the size to the launcher; `runtime_env` is YAML or JSON, or "".
    """

    command: str
    replicas: int
    role: str
    cpus: int
    gpus: int
    memory_bytes: int
    object_store_bytes: int = 0
    runtime_env: str = ""
    retries: int = 0


def say(text: str) -> None:
    """Write a line into the replica's log."""
    sys.stdout.write(f"ray: {text}\n")
    sys.stdout.flush()


class StopSignals:
    """SIGTERM and SIGINT, remembered; signals that warn are ignored here and by Ray's own processes."""

    def __init__(self) -> None:
        self.is_requested = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._request)
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)

    def _request(self, _number: int, _frame: object) -> None:
        self.is_requested = True

    def check(self) -> None:
        """Raise ReplicaEnd once the end was requested."""
        if self.is_requested:
            raise ReplicaEnd(TERMINATED)


class RayNode:
    """`ray start --block` and what it started: Ray's processes of this replica."""

    def __init__(self, ray: str, settings: Settings, folder: Path, stop: StopSignals) -> None:
        self._ray, self._settings, self._folder, self._stop = ray, settings, folder, stop
        self._process: subprocess.Popen[str] | None = None
        self._lines: list[str] = []
        self._is_up = threading.Event()

    def start(self, *options: str) -> None:
        """Start it and wait until it is up.  Raises ReplicaEnd."""
        argv = [self._ray, "start", *options, *self._amounts(), f"--temp-dir={self._folder}", "--block"]
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # what asks this replica to end is not for Ray
        )
        threading.Thread(target=self._read, args=[self._process], daemon=True).start()
        until = time.monotonic() + START_S
        while not self._is_up.wait(POLL_S):
            self._stop.check()
            self.check()
            if time.monotonic() > until:
                raise ReplicaEnd(1, f"Ray did not start within {START_S:.0f} s.\n{self._tail()}")

    def check(self) -> None:
        """Raise ReplicaEnd if it has ended."""
        if self._process is not None and self._process.poll() is not None:
            raise ReplicaEnd(1, f"Ray ended with code {self._process.returncode}.\n{self._tail()}")

    def end(self) -> None:
        """End Ray's processes of this replica; the kernel ends them with `ray start`."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._lines = [*self._lines[-40:], _COLOURS.sub("", line)]
            if _UP in line:
                self._is_up.set()

    def _tail(self) -> str:
        return "".join(self._lines).rstrip()

    def _amounts(self) -> Iterator[str]:
        settings = self._settings
        store = settings.object_store_bytes or choose_store_size(settings.memory_bytes)
        yield f"--num-cpus={settings.cpus}"
        yield f"--num-gpus={settings.gpus}"
        yield f"--memory={max(settings.memory_bytes - store, LEAST_STORE_BYTES)}"
        yield f"--object-store-memory={store}"
        yield f"--resources={json.dumps({settings.role: 1})}"
        yield "--disable-usage-stats"
        yield "--dashboard-agent-listen-port=0"
        yield "--min-worker-port=0"
        yield "--max-worker-port=0"


def choose_store_size(memory_bytes: int) -> int:
    """Return the size of the object store of a node with so much memory: what fits into /dev/shm, if that
    holds any; Ray takes its temporary folder otherwise.
    """
    size = memory_bytes * STORE_PERCENT // 100
    with contextlib.suppress(OSError):
        shm = os.statvfs("/dev/shm")  # noqa: S108 Ray's own choice
        free = shm.f_bavail * shm.f_frsize * 95 // 100
        if free >= LEAST_STORE_BYTES:
            size = min(size, free)
    return max(size, LEAST_STORE_BYTES)


class Connection:
    """Lines of JSON between the head's launcher and another one's."""

    def __init__(self, opened: socket.socket) -> None:
        self._socket = opened
        self._file = opened.makefile("rb")
        self.peer: str = opened.getpeername()[0]
        self.here: str = opened.getsockname()[0]

    def send(self, **message: Any) -> None:
        """Send a message.  Raises OSError."""
        self._socket.sendall(json.dumps(message).encode() + b"\n")

    def receive(self, timeout_s: float | None) -> dict[str, Any]:
        """Return the next message; {} at the end of the connection.  Raises OSError."""
        self._socket.settimeout(timeout_s)
        line = self._file.readline(LINE_BYTES)
        try:
            message = json.loads(line) if line.endswith(b"\n") else {}
        except ValueError:
            message = {}
        return message if isinstance(message, dict) else {}


class JoinServer:
    """Connections of the other launchers to the head's, once they have shown the token."""

    def __init__(self, port: int, token: str) -> None:
        self._token = token.encode()
        self._server = socket.create_server(("", port), backlog=1024)
        self._lock = threading.Lock()
        self._all: list[Connection] = []
        self.waiting: queue.SimpleQueue[Connection] = queue.SimpleQueue()
        threading.Thread(target=self._accept, daemon=True).start()

    def count(self) -> int:
        """Return how many replicas have connected."""
        with self._lock:
            return len(self._all)

    def find_own_address(self) -> str:
        """Return the address at which other machines reach this one; "" if none has."""
        with self._lock:
            found = [each.here for each in self._all if not ip_address(each.here).is_loopback]
        return found[0] if found else ""

    def end(self) -> None:
        """Tell every replica that the job is over."""
        with self._lock:
            for each in self._all:
                with contextlib.suppress(OSError):
                    each.send(end=True)

    def _accept(self) -> None:
        while True:
            opened, _address = self._server.accept()
            threading.Thread(target=self._admit, args=[opened], daemon=True).start()

    def _admit(self, opened: socket.socket) -> None:
        try:
            connection = Connection(opened)
            token = str(connection.receive(STOP_S).get("token", ""))
            if not hmac.compare_digest(token.encode(), self._token):
                opened.close()
                return
        except OSError:
            opened.close()
            return
        with self._lock:
            self._all.append(connection)
        self.waiting.put(connection)


class JobClient:
    """Ray's job API on the head."""

    def __init__(self, host: str, port: int, token: str) -> None:
        self.host, self.port, self._token = host, port, token

    def has_token_authentication(self) -> bool:
        """Return whether Ray asks for the token.  Raises OSError."""
        return self._call("GET", "/api/authentication_mode").get("authentication_mode") == "token"

    def find(self, job: str) -> dict[str, Any]:
        """Return what Ray knows of a job; {} if nothing.  Raises OSError."""
        return self._call("GET", f"/api/jobs/{job}")

    def stop(self, job: str) -> None:
        """Have the job's driver ended."""
        with contextlib.suppress(OSError):
            self._call("POST", f"/api/jobs/{job}/stop")

    def _call(self, method: str, path: str) -> dict[str, Any]:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=STOP_S)
        try:
            connection.request(method, path, headers={"Authorization": f"Bearer {self._token}"})
            answer = connection.getresponse()
            content = json.loads(answer.read()) if answer.status == http.HTTPStatus.OK else {}
        except (http.client.HTTPException, ValueError) as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()
        return content if isinstance(content, dict) else {}


class Head:
    """The first replica."""

    def __init__(self, ray: str, settings: Settings, folder: Path, token: str, stop: StopSignals) -> None:
        self._ray, self._settings, self._folder, self._token, self._stop = ray, settings, folder, token, stop
        self._node = RayNode(ray, settings, folder, stop)
        self._job = os.environ.get("APP_ID") or "job"
        self._joined = 0

    def run(self) -> int:
        """Start Ray's head, have the others join, and run the command; return its exit code."""
        server = JoinServer(int(os.environ["MASTER_PORT"]), self._token)
        try:
            self._wait(lambda: server.count() >= self._settings.replicas - 1)
            client = self._start(server)
            address = self._read_address()
            threading.Thread(target=self._admit_workers, args=[server, address], daemon=True).start()
            self._wait(lambda: self._joined >= self._settings.replicas - 1)
            self._submit(client)
            return self._follow(client)
        finally:
            server.end()
            self._node.end()

    def _wait(self, condition: Any) -> None:
        """Wait for all replicas, as far as they come in time."""
        until = time.monotonic() + JOIN_S
        while not condition():
            self._stop.check()
            self._node.check()
            if time.monotonic() > until:
                say("Not all replicas have joined; the job goes on with those that have.")
                return
            time.sleep(POLL_S)

    def _start(self, server: JoinServer) -> JobClient:
        own = server.find_own_address() or socket.gethostbyname(os.environ["MASTER_ADDR"])
        address = LOOPBACK if ip_address(own).is_loopback else own
        is_protected = find_version(self._ray) >= _TOKEN_SINCE
        client = JobClient(own if is_protected else "127.0.0.1", find_free_port(own), self._token)
        self._node.start(
            "--head",
            f"--node-ip-address={address}",
            "--port=0",
            f"--dashboard-host={client.host}",
            f"--dashboard-port={client.port}",
            f"--ray-client-server-port={find_free_port(address)}",
        )
        try:
            is_protected = client.has_token_authentication()
        except OSError as error:
            raise ReplicaEnd(1, f'Ray has no dashboard here: install "ray[default]". ({error})') from error
        if is_protected:
            announce(client.port)
        else:
            say("This Ray has no token authentication, which begins with 2.52: no link to its dashboard.")
        say(f"The head is up at {address}.")
        return client

    def _read_address(self) -> str:
        """Return the address that Ray chose, which it writes into its folder once it is up."""
        until = time.monotonic() + STOP_S
        while True:
            with contextlib.suppress(FileNotFoundError):
                if text := (self._folder / "ray_current_cluster").read_text(encoding="utf-8").strip():
                    return text
            self._node.check()
            if time.monotonic() > until:
                raise ReplicaEnd(1, "Ray did not write its address.")
            time.sleep(POLL_S)

    def _admit_workers(self, server: JoinServer, address: str) -> None:
        """Let the other replicas join, one at a time."""
        while True:
            connection = server.waiting.get()
            own = address.rpartition(":")[0]
            node = own if ip_address(connection.peer).is_loopback else connection.peer
            with contextlib.suppress(OSError):
                connection.send(start=address, node=node)
                if connection.receive(START_S).get("up"):
                    self._joined += 1
                    say(f"{self._joined + 1} of {self._settings.replicas} nodes are up.")

    def _submit(self, client: JobClient) -> None:
        """Submit the command once.  Raises ReplicaEnd where Ray does not take it."""
        driver = self._folder / "driver"
        numbers = [int(number) for number in _IGNORED]
        write_private(driver, _DRIVER.format(numbers=numbers, command=self._settings.command))
        options = [
            "--no-wait",
            f"--address=http://{client.host}:{client.port}",
            f"--submission-id={self._job}",
        ]
        if self._settings.runtime_env:
            write_private(self._folder / "runtime_env.yaml", self._settings.runtime_env)
            options.append(f"--runtime-env={self._folder / 'runtime_env.yaml'}")
        argv = [self._ray, "job", "submit", *options, "--", sys.executable, "-I", "-S", str(driver)]
        for left in range(self._settings.retries, -1, -1):
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            if done.returncode == 0 or client.find(self._job):
                return
            self._stop.check()
            self._node.check()
            say(f"Ray did not accept the command ({left} more tries).")
            say(_COLOURS.sub("", done.stdout + done.stderr).rstrip())
        raise ReplicaEnd(1)

    def _follow(self, client: JobClient) -> int:
        """Copy the driver's output until it ends; return its exit code."""
        output = DriverLog(self._folder / f"session_latest/logs/job-driver-{self._job}.log")
        is_stopping, answered_at = False, time.monotonic()
        while True:
            if self._stop.is_requested and not is_stopping:
                is_stopping = True
                client.stop(self._job)
            try:
                found = client.find(self._job)
                answered_at = time.monotonic()
            except OSError as error:
                found = {}
                if time.monotonic() > answered_at + SILENT_S:
                    raise ReplicaEnd(1, f"Ray's job API does not answer: {error}") from error
            output.copy()
            if found.get("status") in ("SUCCEEDED", "FAILED", "STOPPED"):
                return self._judge(found)
            self._stop_if_gone()
            time.sleep(POLL_S)

    def _stop_if_gone(self) -> None:
        try:
            self._node.check()
        except ReplicaEnd:
            self._stop.check()
            raise

    def _judge(self, found: dict[str, Any]) -> int:
        if found["status"] == "SUCCEEDED":
            return 0
        if found["status"] == "STOPPED":
            return TERMINATED
        code = found.get("driver_exit_code")
        if not isinstance(code, int):
            say(str(found.get("message")))
            return 1
        return code if code > 0 else 128 - code


class DriverLog:
    """The driver's output, which Ray writes into a file."""

    def __init__(self, path: Path) -> None:
        self._path, self._at = path, 0

    def copy(self) -> None:
        """Copy what is new into the replica's log."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                while piece := file.read(1 << 16):
                    self._at += len(piece)
                    sys.stdout.buffer.write(piece)
        except FileNotFoundError:
            return
        sys.stdout.buffer.flush()


class Worker:
    """Any other replica."""

    def __init__(self, ray: str, settings: Settings, folder: Path, token: str, stop: StopSignals) -> None:
        self._node = RayNode(ray, settings, folder, stop)
        self._token, self._stop = token, stop
        self._messages: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._has_joined = False

    def run(self) -> int:
        """Join Ray's cluster when the head says so, and stay until the job is over.

        A driver that was asked to end has its grace period with all of its nodes.
        """
        connection = self._connect()
        connection.send(token=self._token)
        threading.Thread(target=self._listen, args=[connection], daemon=True).start()
        try:
            while True:
                message = self._next_message()
                if message.get("end"):
                    return TERMINATED if self._stop.is_requested else 0
                if not message:
                    raise ReplicaEnd(1, "The head has ended.")
                self._node.start(f"--address={message['start']}", f"--node-ip-address={message['node']}")
                connection.send(up=True)
                self._has_joined = True
        finally:
            self._node.end()

    def _connect(self) -> Connection:
        until = time.monotonic() + JOIN_S
        address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        while True:
            self._stop.check()
            try:
                return Connection(socket.create_connection(address, timeout=STOP_S))
            except OSError as error:
                if time.monotonic() > until:
                    raise ReplicaEnd(1, f"The head does not answer: {error}") from error
            time.sleep(POLL_S)

    def _listen(self, connection: Connection) -> None:
        message: dict[str, Any] = {"": ""}
        while message:
            try:
                message = connection.receive(None)
            except OSError:
                message = {}
            self._messages.put(message)

    def _next_message(self) -> dict[str, Any]:
        while True:
            with contextlib.suppress(queue.Empty):
                return self._messages.get(timeout=POLL_S)
            if not self._has_joined:
                self._stop.check()
            self._node.check()


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, which Ray's processes survive by seconds."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_descendants() -> None:
    """Kill whatever is left below this process, and wait until it is gone."""
    until = time.monotonic() + STOP_S
    while time.monotonic() < until:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not (left := list_descendants()):
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_REAP_S)


def list_descendants() -> list[int]:
    """Return the processes below this one."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found, below = [], [os.getpid()]
    while below:
        below = [child for parent in below for child in children.get(parent, ())]
        found += below
    return found


def announce(port: int) -> None:
    """Announce the dashboard as an endpoint of the job."""
    line = {"label": DASHBOARD, "port": port, "probe": "/api/authentication_mode", "token": COOKIE}
    with Path(os.environ["JOB_CONSOLE_ENDPOINTS"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def find_free_port(host: str) -> int:
    """Return a port of that address which is free now."""
    with socket.socket() as free:
        free.bind((host, 0))
        return int(free.getsockname()[1])


def find_version(ray: str) -> tuple[int, ...]:
    """Return the version of the Ray that `ray` belongs to; () if it can't be found."""
    python = shutil.which("python3", path=str(Path(ray).parent)) or "python3"
    program = "import importlib.metadata as m; print(m.version('ray'))"
    found = subprocess.run([python, "-c", program], capture_output=True, text=True, check=False)
    return tuple(int(part) for part in re.findall(r"\d+", found.stdout)[:2])


def hide_packages(runtime_env: str, ray: str) -> None:
    """Hide the packages that the console installed, where Ray's runtime environment has some of its own.

    They would come first on Python's path, and the runtime environment replaces them (DLC page).  An
    installation that has Ray itself stays.
    """
    base = os.environ.get("PYTHONUSERBASE", "")
    if not base or ray.startswith(f"{base}/") or not _PACKAGES.search(runtime_env):
        return
    del os.environ["PYTHONUSERBASE"]
    folders = os.environ.get("PYTHONPATH", "").split(":")
    os.environ["PYTHONPATH"] = ":".join(each for each in folders if not each.startswith(f"{base}/"))


def write_private(path: Path, text: str) -> None:
    """Write a file that nobody else can read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def make_folder() -> Path:
    """Make Ray's temporary folder: its path is short, as sockets lie below it."""
    return Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))


def main(settings: Settings) -> int:
    """Run the replica; return its exit code."""
    ray = shutil.which("ray") or "ray"
    token = os.environ.get(TOKEN, "")
    if not token:
        say(f"{TOKEN} is not set: it protects Ray from other users.")
        return 1
    folder = make_folder()
    adopt_orphans()
    try:
        write_private(folder / "token", token)
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN_PATH=str(folder / "token"))
        os.environ.setdefault("RAY_JOB_STOP_WAIT_TIME_S", "3600")  # the job's own time to end is shorter
        os.environ.pop("RAY_AUTH_TOKEN", None)
        hide_packages(settings.runtime_env, ray)
        kind = Head if os.environ["RANK"] == "0" else Worker
        return kind(ray, settings, folder, token, StopSignals()).run()
    except ReplicaEnd as end:
        if str(end):
            say(str(end))
        return end.code
    finally:
        end_descendants()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(Settings(**json.loads(sys.argv[1]))))
