"""The node relay: copies files between a node and the console where they share no folder.

It travels in the job's script, runs on each node of the job as the job's user, and needs only the standard
library.  To the console it sends the bytes of logs that are missing there, and the small status files of the
script and its replicas.  From the console it fetches what a replica needs, and what users request: an end, a
session listener.  All state is in the two folders: a relay that was killed is replaced by another, and what
is sent twice changes nothing.

Its arguments are the console's URL for this attempt, the attempt's folder on the node, the job's number at
the engine, the run, an identifier of this start of the run, and a verb with its own arguments.  The token is
in its environment, which other users can't read.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import http.client
import json
import os
import shutil
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from urllib.parse import urlsplit

T = TypeVar("T")

CHUNK = 1 << 19  # a proxy may accept no more than a megabyte at a time
MAX_FILE = 3 << 20  # of a small file
TIMEOUT_S = 20.0
START_S = 600.0  # a job that begins waits so long for the console
END_S = 300.0  # and one that has ended
LOOK_S = 15.0
IDLE_S, BUSY_S, AWAY_S = 2.0, 0.5, 10.0
OLD_S = 86400.0

OTHER_JOB, STATE_LOST, NO_FOLDER, NO_ANSWER, REFUSED = 3, 4, 73, 75, 77
TOKEN_VARIABLE = "COURIER_TOKEN"  # noqa: S105 a name
INPUT_FILES = ("plan", "secrets", "login", "code-key", "dir-login", "dir-code-key", "bucket-login")
RUN_FILES = ("hosts", "ports", "taken", "peers", "before", "ending")
RUN_FOLDERS = ("started", "ends", "logs", "work", "steps", "views", "doors", "failed")
CREDENTIALS = "role-credentials"  # see jobs.node.credential_server
EVENT_FILE = "events.out.tfevents."  # begins the names of TensorBoard's event files
EVENT_FILES, EVENT_DEPTH, EVENT_ENTRIES = (
    50,
    6,
    2000,
)  # so many, so deep, among so many entries of a work folder
EVENT_SEARCH_S = 20.0
REPLICA_FILES = (".job-console-endpoints", ".job-console-sanity")
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class ConsoleAway(Exception):
    """The console does not answer, or another server does."""


class RelayRefused(Exception):
    """The console accepts nothing of this start of this attempt (any more)."""


class ConsoleConnection:
    """A connection to the console's URL for one attempt, which is kept open."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
        self._path, self._token = parts.path, token

    def post(self, head: dict[str, Any], data: bytes = b"") -> dict[str, Any]:
        """Send a message and return the reply.  Raises ConsoleAway or RelayRefused."""
        status, reply = self._ask("POST", "", json.dumps(head).encode() + b"\n" + data)
        if status in (400, 401, 409, 410):
            raise RelayRefused(reply.decode(errors="replace")[:500])
        try:
            found = json.loads(reply) if status == 200 else None
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise ConsoleAway(f"status {status}")
        return found

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def get(self, name: str) -> Iterator[bytes]:
        """Yield the chunks of a file that the console has for this attempt, none where it has none."""
        at = 0
        while True:
            status, reply = self._ask("GET", f"/{name}?at={at}")
            if status in (204, 404):
                return
            if status in (400, 401, 409, 410):
                raise RelayRefused(name)
            if status != 200:
                raise ConsoleAway(f"status {status}")
            yield reply
            at += len(reply)
            if len(reply) < CHUNK:
                return

    def _ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        was_open = self._connection.sock is not None
        try:
            self._connection.request(
                method, self._path + path, body, {"Authorization": f"Bearer {self._token}"}
            )
            answer = self._connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            if was_open:  # an idle connection may be closed; a repeated request changes nothing
                return self._ask(method, path, body)
            raise ConsoleAway(repr(error)) from error


class NodeRelay:
    """The relay of one start of one run, on one node."""

    def __init__(self, console: ConsoleConnection, folder: str, number: int, run: int, start: str) -> None:
        self.console, self.folder = console, folder
        self.parent, self.run = os.path.dirname(folder), f"run-{run}"
        self.about = {"number": number, "run": run, "start": start}
        self._sizes: dict[str, int] = {}
        self._full: set[str] = set()
        self._versions: dict[str, int] = {}
        self._event_files: list[str] = []
        self._search_at = 0.0

    def begin(self) -> int:
        """Claim the run, and make its folder; return the exit code."""
        self._make_folders()
        reply = self._retry(lambda: self.console.post({**self.about, "claim": True}), START_S)
        if reply.get("claim") != "mine":
            return STATE_LOST if reply.get("claim") == "rewound" else OTHER_JOB
        with self.hold_lock():
            self._make_folders()
            shutil.rmtree(self._path(self.run), ignore_errors=True)
            os.mkdir(self._path(self.run), 0o700)
            self._mark("script")
        return 0

    def bring(self, name: str) -> int:
        """Fetch what a replica needs before it begins; OTHER_JOB where it has begun already."""
        with self.hold_lock():
            self._make_folders()
            for each in ("", *RUN_FOLDERS):
                os.makedirs(self._path(self.run, each), 0o700, exist_ok=True)
            if name and not self._mark(name):
                return OTHER_JOB
        self._retry(self._fetch_all, START_S)
        return 0

    def look(self) -> int:
        """Fetch requests only."""
        self._retry(self._fetch_requests, LOOK_S)
        return 0

    def sync(self, patience_s: float) -> int:
        """Relay until the console has everything."""
        self._search_at = 0.0
        self._retry(self._send_all, patience_s)
        return 0

    def leave(self, name: str) -> int:
        """Relay at the end of the script or a replica; the last one removes the folder."""
        code = 0
        try:
            self.sync(END_S)
        except (ConsoleAway, RelayRefused) as error:
            print(f"What was written last has not reached the console: {error}", file=sys.stderr)
            code = NO_ANSWER
        with self.hold_lock():
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path(self._mark_name(name)))
            left = os.listdir(self.folder) if os.path.isdir(self.folder) else []
            gone = (
                self._rename_away(self.folder) if not any(each.startswith("inside-") for each in left) else ""
            )
        shutil.rmtree(gone or os.devnull, ignore_errors=True)
        return code

    def follow(self) -> int:
        """Relay as `watch` does, once no other process does so on this node."""
        _end_with_parent()
        file = os.open(self._path("courier"), os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        fcntl.flock(file, fcntl.LOCK_EX)
        return self.watch()

    def watch(self) -> int:
        """Relay until the parent process is gone."""
        _end_with_parent()
        parent, pause, touched = os.getppid(), BUSY_S, 0.0
        while os.getppid() == parent:
            if time.monotonic() > touched + 60:
                touched = time.monotonic()
                os.utime(self._path("courier"))
            try:
                moved = self._send_all()
                pause = BUSY_S if moved else min(IDLE_S, pause * 1.5)
            except ConsoleAway:
                pause = min(AWAY_S, pause * 2)
            time.sleep(pause)
        return 0

    def fetch(self, name: str) -> int:
        """Write one file of the console to stdout."""
        for piece in self.console.get(name):
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return 0

    # --- to the console ---

    def _send_all(self) -> bool:
        """Send all that is new; return whether there was anything."""
        ended = set(self._names("ends"))  # before the logs are read: nothing is appended after an end
        growing = [*self._logs(), *self._find_event_files()]
        goals = {name: seen.st_size for name in growing if (seen := self._stat(name)) is not None}
        moved = False
        while True:
            pieces, data = self._pieces(ended, goals)
            self._apply(self.console.post({**self._head(), "pieces": pieces}, data))
            if not pieces:
                return moved
            for name, _at, size, version in pieces:
                moved = moved or size > 0
                if version:
                    self._versions[name] = version

    def _head(self) -> dict[str, Any]:
        return {**self.about, "ends": len(self._names("ends"))}

    def _pieces(
        self, ended: set[str], goals: dict[str, int]
    ) -> tuple[list[tuple[str, int, int, int]], bytes]:
        """Return the pieces of the next request: bytes of logs first, and no end before all of its log."""
        pieces: list[tuple[str, int, int, int]] = []
        data, late = bytearray(), set()
        for name, goal in goals.items():
            at = self._sizes.get(name)
            if at is None:
                pieces.append((name, 0, 0, 0))  # asks how much the console has
            elif goal <= at or name in self._full:
                continue
            elif more := self._read(name, at, min(goal - at, CHUNK - len(data))):
                pieces.append((name, at, len(more), 0))
                data += more
            late.add(_replica_of(name))
        for name in self._small(ended - late):
            version = self._version(name)
            if version is None or (name == f"{self.run}/end" and (pieces or late)):
                continue
            text = self._read(name, 0, MAX_FILE)
            if pieces and len(data) + len(text) > MAX_FILE:
                break
            pieces.append((name, 0, len(text), version))
            data += text
        return pieces, bytes(data)

    def _logs(self) -> list[str]:
        return [f"{self.run}/slurm.output", *(f"{self.run}/logs/{each}" for each in self._names("logs"))]

    def _find_event_files(self) -> list[str]:
        """Return the event files below the work folders, which are searched now and then."""
        if time.monotonic() >= self._search_at:
            self._search_at = time.monotonic() + EVENT_SEARCH_S
            self._event_files = [file for name in self._names("work") for file in self._search(name)]
        return self._event_files

    def _search(self, name: str) -> list[str]:
        """Return the event files of a replica, those of shallow folders first; no link is followed."""
        found: list[str] = []
        folders, entries = [f"{self.run}/work/{name}"], 0
        for folder in folders:  # which grows
            with contextlib.suppress(OSError), os.scandir(self._path(folder)) as rows:
                for row in rows:
                    entries += 1
                    if entries > EVENT_ENTRIES or len(found) == EVENT_FILES:
                        return found
                    path = f"{folder}/{row.name}"
                    if row.is_dir(follow_symlinks=False):
                        if path.count("/") < 3 + EVENT_DEPTH and not row.name.startswith("."):
                            folders.append(path)
                    elif row.name.startswith(EVENT_FILE) and row.name.isprintable():
                        found.append(path)
        return found

    def _small(self, ended: set[str]) -> Iterator[str]:
        """Yield the names of small files, those of ends last."""
        yield "rewound"
        yield from (f"{self.run}/{name}" for name in RUN_FILES)
        for folder in ("started", "steps", "doors", "failed"):
            yield from (f"{self.run}/{folder}/{name}" for name in self._names(folder))
        for file in REPLICA_FILES:
            yield from (f"{self.run}/work/{name}/{file}" for name in self._names("work"))
        yield from (f"{self.run}/ends/{name}" for name in sorted(ended))
        yield f"{self.run}/end"

    def _version(self, name: str) -> int | None:
        """Return the time of a small file if the console does not have it as it is now."""
        seen = self._stat(name)
        if seen is None or seen.st_mtime_ns == self._versions.get(name) or seen.st_size > MAX_FILE:
            return None
        return seen.st_mtime_ns

    def _read(self, name: str, at: int, size: int) -> bytes:
        file = os.open(self._path(name), _FILE)
        try:
            return os.pread(file, size, at)
        finally:
            os.close(file)

    def _stat(self, name: str) -> os.stat_result | None:
        try:
            seen = os.lstat(self._path(name))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return seen if stat.S_ISREG(seen.st_mode) else None

    def _names(self, folder: str) -> list[str]:
        try:
            return [each for each in os.listdir(self._path(self.run, folder)) if not each.endswith(".new")]
        except (FileNotFoundError, NotADirectoryError):
            return []

    # --- from the console ---

    def _fetch_requests(self) -> bool:
        self._apply(self.console.post({**self._head(), "pieces": []}))
        return False

    def _apply(self, reply: dict[str, Any]) -> None:
        """Write what users request, and what other nodes have written."""
        self._sizes |= reply.get("sizes", {})
        self._full |= set(reply.get("full", ()))
        for name, text in reply.get("run", {}).items():
            self._write_file(f"{self.run}/{name}", text)
        archive = reply.get("luggage", "")  # one for all jobs on the node
        if archive and not os.path.exists(os.path.join(self.parent, archive)):
            self._fetch(f"luggage/{archive}", f"../{archive}")
        requests = reply.get("asked", {})
        for name, text in requests.items():
            self._write_file(name, text)
        for name in os.listdir(self.folder):
            if (name.startswith("enter-") or name == CREDENTIALS) and name not in requests:
                os.unlink(self._path(name))

    def _fetch_all(self) -> None:
        reply = self.console.post({**self._head(), "pieces": []})
        self._apply(reply)
        for name in reply.get("there", ()):
            if not os.path.exists(self._path(name)):
                self._fetch(name, name)

    def _fetch(self, name: str, to: str) -> None:
        data = b"".join(self.console.get(name))
        if data:
            self._write_file(to, data)

    def _write_file(self, name: str, content: str | bytes) -> None:
        """Write a file atomically, unless it is the same already."""
        path, data = self._path(name), content.encode() if isinstance(content, str) else content
        with contextlib.suppress(OSError):
            if self._read(name, 0, len(data) + 1) == data:
                return
        new = os.path.join(self.parent, f".{os.getpid()}.{os.urandom(4).hex()}")
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(file, "wb") as written:
            written.write(data)
        os.rename(new, path)
        self._versions[name] = os.lstat(path).st_mtime_ns

    # --- the folder ----------------------------------------------------------------------------------------

    def _path(self, *names: str) -> str:
        return os.path.join(self.folder, *names)

    def _make_folders(self) -> None:
        """Make the attempt's folder and its parent, closed to other users."""
        for path in (self.parent, self.folder):
            with contextlib.suppress(FileExistsError):
                os.mkdir(path, 0o700)
            seen = os.lstat(path)
            if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid() or seen.st_mode & 0o077:
                raise PermissionError(f"{path} is not this user's own, or is open to others")

    @contextlib.contextmanager
    def hold_lock(self) -> Iterator[None]:
        """Hold the lock under which folders of this console are made and removed on the node."""
        self._make_folders()
        file = os.open(os.path.join(self.parent, "lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        gone = []
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            gone = list(self._find_abandoned())
            yield
        finally:
            os.close(file)
            for each in gone:
                shutil.rmtree(each, ignore_errors=True)

    def _find_abandoned(self) -> Iterator[str]:
        """Yield the folders of jobs that were killed a day ago."""
        for each in os.scandir(self.parent):
            if not each.is_dir(follow_symlinks=False) or each.path == self.folder:
                continue
            with contextlib.suppress(OSError):
                watched = os.path.join(each.path, "courier")
                at = os.lstat(watched if os.path.exists(watched) else each.path).st_mtime
                if at < time.time() - OLD_S and not _is_held(watched):
                    yield self._rename_away(each.path)

    def _rename_away(self, path: str) -> str:
        """Rename a folder that is to be removed; return its new path."""
        if not os.path.isdir(path):
            return ""
        gone = f"{path}.gone{os.getpid()}"
        os.rename(path, gone)
        return gone

    def _mark_name(self, name: str) -> str:
        return f"inside-{self.run}-{name}"

    def _mark(self, name: str) -> bool:
        try:
            os.close(os.open(self._path(self._mark_name(name)), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            return False
        return True

    def _retry(self, what: Callable[[], T], patience_s: float) -> T:
        """Retry until the console answers.  Raises ConsoleAway after `patience_s`."""
        until, pause = time.monotonic() + patience_s, BUSY_S
        while True:
            try:
                return what()
            except ConsoleAway:
                if time.monotonic() + pause > until:
                    raise
            time.sleep(pause)
            pause = min(AWAY_S, pause * 2)


def _replica_of(name: str) -> str:
    """Return the replica's name in that of a file that grows."""
    parts = name.split("/")
    return parts[2] if parts[1] == "work" else parts[-1].removesuffix(".output").removesuffix(".times")


def _end_with_parent() -> None:
    """Have this process killed at once when its parent ends, if the system has that."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, int(signal.SIGKILL))


def _is_held(path: str) -> bool:
    """Return whether a relay holds that lock."""
    try:
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def check_console(url: str) -> int:
    """Return 0 if the console is reached at the URL, else 1."""
    console = ConsoleConnection(f"{url}/courier", "")
    try:
        return 0 if json.loads(b"".join(console.get(""))) == {"console": True} else 1
    except (ConsoleAway, RelayRefused, ValueError) as error:
        print(f"The console gave no answer: {error}", file=sys.stderr)
        return 1
    finally:
        console.close()


def main(arguments: list[str]) -> int:
    """Run one verb; return the exit code."""
    if arguments[0] == "here":
        return check_console(arguments[1])
    url, folder, number, run, start, verb, *more = arguments
    relay = NodeRelay(
        ConsoleConnection(url, os.environ[TOKEN_VARIABLE]), folder, int(number), int(run), start
    )
    verbs: dict[str, Callable[..., int]] = {
        "begin": relay.begin,
        "bring": relay.bring,
        "look": relay.look,
        "sync": lambda: relay.sync(float(more[0])),
        "leave": relay.leave,
        "watch": relay.watch,
        "follow": relay.follow,
        "fetch": relay.fetch,
    }
    try:
        return verbs[verb](*([] if verb == "sync" else more))
    except ConsoleAway as error:
        print(f"The console gave no answer: {error}", file=sys.stderr)
        return NO_ANSWER
    except RelayRefused as error:
        print(f"The console wants nothing of this job: {error}", file=sys.stderr)
        return REFUSED
    except OSError as error:
        print(f"The job's folder can't be used: {error}", file=sys.stderr)
        return NO_FOLDER


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
