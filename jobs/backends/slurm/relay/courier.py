"""The program that carries between a node and the console where they share no folder.

It travels in the job's script, runs on each node of the job as the job's user, and needs nothing but Python's
own library.  Outwards it brings what the console reads: the bytes of logs, from where the console stands, and
the small files in which the script and its replicas write down how far they are.  Homewards it brings what a
replica needs from the console, and what people ask for: a stop, a door.  All state is in those two folders,
so one that is killed is followed by another, and what is carried twice changes nothing.

It is begun with the console's address for this attempt, the attempt's folder on the node, the job's number at
Slurm, the run, and the word that this start of it goes by; then with what is to be done.  The token is in its
environment, where other users can't see it.
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

PIECE = 1 << 19  # what stands before a web server may take no more than a megabyte at a time
MOST = 3 << 20  # of a small file
TIMEOUT_S = 20.0
START_S = 600.0  # so long a job that is to begin waits for the console
END_S = 300.0  # and so long one that has ended
LOOK_S = 15.0
IDLE_S, BUSY_S, AWAY_S = 2.0, 0.5, 10.0
OLD_S = 86400.0

ANOTHERS, REWOUND, NO_FOLDER, NO_ANSWER, REFUSED = 3, 4, 73, 75, 77
FIRST = ("secrets", "login", "code-key")
OF_RUN = ("hosts", "ports", "taken", "peers", "before", "ending")
FOLDERS = ("started", "ends", "logs", "work", "steps", "views", "doors")
ANNOUNCED = ".job-console-endpoints"
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Away(Exception):
    """The console gives no answer, or none that it would give."""


class Refused(Exception):
    """The console wants nothing of this start of this attempt (any more)."""


class Console:
    """The console at the address that it has for one attempt; the connection stays open."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._line = kind(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
        self._path, self._token = parts.path, token

    def post(self, head: dict[str, Any], data: bytes = b"") -> dict[str, Any]:
        """Give it something, and hear what it has.  Raises Away or Refused."""
        status, said = self._ask("POST", "", json.dumps(head).encode() + b"\n" + data)
        if status in (400, 401, 409, 410):
            raise Refused(said.decode(errors="replace")[:500])
        try:
            found = json.loads(said) if status == 200 else None
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise Away(f"status {status}")
        return found

    def close(self) -> None:
        """Hang up."""
        self._line.close()

    def get(self, name: str) -> Iterator[bytes]:
        """A file that it has for this attempt, piece by piece; nothing where it has none."""
        at = 0
        while True:
            status, said = self._ask("GET", f"/{name}?at={at}")
            if status in (204, 404):
                return
            if status in (400, 401, 409, 410):
                raise Refused(name)
            if status != 200:
                raise Away(f"status {status}")
            yield said
            at += len(said)
            if len(said) < PIECE:
                return

    def _ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        was_open = self._line.sock is not None
        try:
            self._line.request(method, self._path + path, body, {"Authorization": f"Bearer {self._token}"})
            answer = self._line.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._line.close()
            if was_open:  # it may have been closed for its silence alone; what is asked twice changes nothing
                return self._ask(method, path, body)
            raise Away(repr(error)) from error


class Courier:
    """What there is to carry for one start of one run, on one node."""

    def __init__(self, console: Console, folder: str, number: int, run: int, start: str) -> None:
        self.console, self.folder = console, folder
        self.parent, self.run = os.path.dirname(folder), f"run-{run}"
        self.about = {"number": number, "run": run, "start": start}
        self._sizes: dict[str, int] = {}
        self._full: set[str] = set()
        self._known: dict[str, int] = {}

    def begin(self) -> int:
        """Ask whether this job may run here and now, and make its folder."""
        self._make()
        said = self._patiently(lambda: self.console.post({**self.about, "claim": True}), START_S)
        if said.get("claim") != "mine":
            return REWOUND if said.get("claim") == "rewound" else ANOTHERS
        with self._locked():
            self._make()
            shutil.rmtree(self._path(self.run), ignore_errors=True)
            os.mkdir(self._path(self.run), 0o700)
            self._mark("script")
        return 0

    def bring(self, name: str) -> int:
        """What a replica needs before it begins; ANOTHERS where it has begun already."""
        with self._locked():
            self._make()
            for each in ("", *FOLDERS):
                os.makedirs(self._path(self.run, each), 0o700, exist_ok=True)
            if name and not self._mark(name):
                return ANOTHERS
        self._patiently(self._fetch_all, START_S)
        return 0

    def look(self) -> int:
        """Only hear what the console has."""
        self._patiently(self._hear, LOOK_S)
        return 0

    def sync(self, patience_s: float) -> int:
        """Carry until the console has everything."""
        self._patiently(self._carry, patience_s)
        return 0

    def leave(self, name: str) -> int:
        """The same at the end of the script or a replica; the last one removes the folder."""
        code = 0
        try:
            self.sync(END_S)
        except (Away, Refused) as error:
            print(f"What was written last has not reached the console: {error}", file=sys.stderr)
            code = NO_ANSWER
        with self._locked():
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path(self._marked(name)))
            left = os.listdir(self.folder) if os.path.isdir(self.folder) else []
            gone = self._drop(self.folder) if not any(each.startswith("inside-") for each in left) else ""
        shutil.rmtree(gone or os.devnull, ignore_errors=True)
        return code

    def watch(self) -> int:
        """Carry on and on, until whoever began it is gone."""
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, int(signal.SIGKILL))  # at once, if the system has that
        parent, pause, touched = os.getppid(), BUSY_S, 0.0
        while os.getppid() == parent:
            if time.monotonic() > touched + 60:
                touched = time.monotonic()
                os.utime(self._path("courier"))
            try:
                moved = self._carry()
                pause = BUSY_S if moved else min(IDLE_S, pause * 1.5)
            except Away:
                pause = min(AWAY_S, pause * 2)
            time.sleep(pause)
        return 0

    def fetch(self, name: str) -> int:
        """One file of the console's, to stdout."""
        for piece in self.console.get(name):
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return 0

    # --- outwards ------------------------------------------------------------------------------------------

    def _carry(self) -> bool:
        """Everything that there is now; whether there was anything."""
        ended = set(self._names("ends"))  # before the logs are looked at: nothing follows in those
        goals = {name: seen.st_size for name in self._logs() if (seen := self._stat(name)) is not None}
        moved = False
        while True:
            pieces, data = self._pieces(ended, goals)
            self._take(self.console.post({**self._head(), "pieces": pieces}, data))
            if not pieces:
                return moved
            for name, _at, size, version in pieces:
                moved = moved or size > 0
                if version:
                    self._known[name] = version

    def _head(self) -> dict[str, Any]:
        return {**self.about, "ends": len(self._names("ends"))}

    def _pieces(
        self, ended: set[str], goals: dict[str, int]
    ) -> tuple[list[tuple[str, int, int, int]], bytes]:
        """What goes with the next request: bytes of logs first, and no end before all of its log."""
        pieces: list[tuple[str, int, int, int]] = []
        data, late = bytearray(), set()
        for name, goal in goals.items():
            at = self._sizes.get(name)
            if at is None:
                pieces.append((name, 0, 0, 0))  # where does the console stand?
            elif goal <= at or name in self._full:
                continue
            elif more := self._read(name, at, min(goal - at, PIECE - len(data))):
                pieces.append((name, at, len(more), 0))
                data += more
            late.add(name.rpartition("/")[2].removesuffix(".output"))
        for name in self._small(ended - late):
            version = self._version(name)
            if version is None or (name == f"{self.run}/end" and (pieces or late)):
                continue
            text = self._read(name, 0, MOST)
            if pieces and len(data) + len(text) > MOST:
                break
            pieces.append((name, 0, len(text), version))
            data += text
        return pieces, bytes(data)

    def _logs(self) -> list[str]:
        return [f"{self.run}/slurm.output", *(f"{self.run}/logs/{each}" for each in self._names("logs"))]

    def _small(self, ended: set[str]) -> Iterator[str]:
        """The names of small files, those of ends last."""
        yield "rewound"
        yield from (f"{self.run}/{name}" for name in OF_RUN)
        for folder in ("started", "steps", "doors"):
            yield from (f"{self.run}/{folder}/{name}" for name in self._names(folder))
        yield from (f"{self.run}/work/{name}/{ANNOUNCED}" for name in self._names("work"))
        yield from (f"{self.run}/ends/{name}" for name in sorted(ended))
        yield f"{self.run}/end"

    def _version(self, name: str) -> int | None:
        """Of a small file that the console has not seen as it is now."""
        seen = self._stat(name)
        if seen is None or seen.st_mtime_ns == self._known.get(name) or seen.st_size > MOST:
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

    # --- homewards -----------------------------------------------------------------------------------------

    def _hear(self) -> bool:
        self._take(self.console.post({**self._head(), "pieces": []}))
        return False

    def _take(self, said: dict[str, Any]) -> None:
        """What people ask for, and what other nodes wrote down."""
        self._sizes |= said.get("sizes", {})
        self._full |= set(said.get("full", ()))
        for name, text in said.get("run", {}).items():
            self._put(f"{self.run}/{name}", text)
        archive = said.get("luggage", "")  # one for all jobs on the node
        if archive and not os.path.exists(os.path.join(self.parent, archive)):
            self._fetch(f"luggage/{archive}", f"../{archive}")
        asked = said.get("asked", {})
        for name, text in asked.items():
            self._put(name, text)
        for name in os.listdir(self.folder):
            if name.startswith("enter-") and name not in asked:
                os.unlink(self._path(name))

    def _fetch_all(self) -> None:
        said = self.console.post({**self._head(), "pieces": []})
        self._take(said)
        for name in said.get("there", ()):
            if not os.path.exists(self._path(name)):
                self._fetch(name, name)

    def _fetch(self, name: str, to: str) -> None:
        data = b"".join(self.console.get(name))
        if data:
            self._put(to, data)

    def _put(self, name: str, content: str | bytes) -> None:
        """There at one instant, whole; nothing where it is so already."""
        path, data = self._path(name), content.encode() if isinstance(content, str) else content
        with contextlib.suppress(OSError):
            if self._read(name, 0, len(data) + 1) == data:
                return
        new = os.path.join(self.parent, f".{os.getpid()}.{os.urandom(4).hex()}")
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(file, "wb") as written:
            written.write(data)
        os.rename(new, path)
        self._known[name] = os.lstat(path).st_mtime_ns

    # --- the folder ----------------------------------------------------------------------------------------

    def _path(self, *names: str) -> str:
        return os.path.join(self.folder, *names)

    def _make(self) -> None:
        """The folder, and the one around it: ours, and nobody else's to look into."""
        for path in (self.parent, self.folder):
            with contextlib.suppress(FileExistsError):
                os.mkdir(path, 0o700)
            seen = os.lstat(path)
            if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid() or seen.st_mode & 0o077:
                raise PermissionError(f"{path} is not this user's own, or is open to others")

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """While nobody else makes or removes folders of this console's on the node."""
        self._make()
        file = os.open(os.path.join(self.parent, "lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        gone = []
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            gone = list(self._left_behind())
            yield
        finally:
            os.close(file)
            for each in gone:
                shutil.rmtree(each, ignore_errors=True)

    def _left_behind(self) -> Iterator[str]:
        """What jobs that were killed have left here a day ago."""
        for each in os.scandir(self.parent):
            if not each.is_dir(follow_symlinks=False) or each.path == self.folder:
                continue
            with contextlib.suppress(OSError):
                watched = os.path.join(each.path, "courier")
                at = os.lstat(watched if os.path.exists(watched) else each.path).st_mtime
                if at < time.time() - OLD_S and not _is_held(watched):
                    yield self._drop(each.path)

    def _drop(self, path: str) -> str:
        """Out of the way; what it is called then."""
        if not os.path.isdir(path):
            return ""
        gone = f"{path}.gone{os.getpid()}"
        os.rename(path, gone)
        return gone

    def _marked(self, name: str) -> str:
        return f"inside-{self.run}-{name}"

    def _mark(self, name: str) -> bool:
        try:
            os.close(os.open(self._path(self._marked(name)), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            return False
        return True

    def _patiently(self, what: Callable[[], T], patience_s: float) -> T:
        """Once the console answers.  Raises Away where it does not for so long."""
        until, pause = time.monotonic() + patience_s, BUSY_S
        while True:
            try:
                return what()
            except Away:
                if time.monotonic() + pause > until:
                    raise
            time.sleep(pause)
            pause = min(AWAY_S, pause * 2)


def _is_held(path: str) -> bool:
    """Whether a courier is at work there."""
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


def here(url: str) -> int:
    """Whether a console is reached there."""
    console = Console(f"{url}/courier", "")
    try:
        return 0 if json.loads(b"".join(console.get(""))) == {"console": True} else 1
    except (Away, Refused, ValueError) as error:
        print(f"The console gave no answer: {error}", file=sys.stderr)
        return 1
    finally:
        console.close()


def main(arguments: list[str]) -> int:
    """Do one thing; what comes of it is the exit code."""
    if arguments[0] == "here":
        return here(arguments[1])
    url, folder, number, run, start, verb, *more = arguments
    courier = Courier(Console(url, os.environ["COURIER_TOKEN"]), folder, int(number), int(run), start)
    verbs: dict[str, Callable[..., int]] = {
        "begin": courier.begin,
        "bring": courier.bring,
        "look": courier.look,
        "sync": lambda: courier.sync(float(more[0])),
        "leave": courier.leave,
        "watch": courier.watch,
        "fetch": courier.fetch,
    }
    try:
        return verbs[verb](*([] if verb == "sync" else more))
    except Away as error:
        print(f"The console gave no answer: {error}", file=sys.stderr)
        return NO_ANSWER
    except Refused as error:
        print(f"The console wants nothing of this job: {error}", file=sys.stderr)
        return REFUSED
    except OSError as error:
        print(f"The job's folder can't be used: {error}", file=sys.stderr)
        return NO_FOLDER


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
