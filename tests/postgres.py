"""A private PostgreSQL server for one run of the tests: on a Unix socket, and gone afterwards."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import psutil
import psycopg
from psycopg import sql

from tests.ports import free_port
from tests.waiting import wait_for

OWNER = "console"
PRIORITY = -10
"""Of the server's processes: each query of a test waits for them, behind all that the others compute."""

SETTINGS = (
    "max_connections=200",
    *("jit=off", "autovacuum=off"),  # tables are small, and emptied again and again
    *("wal_level=minimal", "max_wal_senders=0", "full_page_writes=off", "synchronous_commit=off"),
)


def find_programs() -> Path | None:
    """The folder with initdb and postgres: from the PATH, else the newest of Debian's."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    versions = sorted(
        Path("/usr/lib/postgresql").glob("[0-9]*/bin/initdb"), key=lambda path: int(path.parts[-3])
    )
    return versions[-1].parent if versions else None


class Server:
    """A private server in a folder of its own; it may be killed and started again.

    `url` is that of its one database.  With `address` it listens there, for everybody who reaches it.
    """

    def __init__(self, programs: Path, settings: Sequence[str] = SETTINGS, address: str = "") -> None:
        self._programs, self._settings, self._user, self._address = programs, settings, _user(), address
        self._process: subprocess.Popen[bytes] | None = None
        self.folder = Path(tempfile.mkdtemp(prefix="pg-"))
        self.url = _url(self.folder, OWNER)
        if address:
            port = free_port()
            self._settings = (*settings, f"port={port}")
            self.url = f"postgres://{OWNER}@{address}:{port}/{OWNER}"
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        options = ["-U", OWNER, "-A", "trust", "-E", "UTF8", "--no-locale", "-N"]
        initdb = [str(programs / "initdb"), "-D", str(self.folder / "data"), *options]
        subprocess.run(initdb, check=True, user=self._user, cwd=self.folder, stdout=subprocess.DEVNULL)
        if address:
            with (self.folder / "data" / "pg_hba.conf").open("a", encoding="ascii") as rules:
                rules.write(f"host all all {address}/24 trust\n")

    def start(self) -> None:
        """Start it, and wait until its database is there."""
        # -F: no fsync, nothing here outlives the tests.
        settings = (word for each in self._settings for word in ("-c", each))
        options = [
            "-D",
            str(self.folder / "data"),
            "-k",
            str(self.folder),
            "-h",
            self._address,
            "-F",
            *settings,
        ]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._programs / "postgres"), *options],
                user=self._user,
                cwd=self.folder,
                stderr=log,
                start_new_session=True,
            )
        if self._user is not None:  # root may
            os.setpriority(os.PRIO_PROCESS, self._process.pid, PRIORITY)
        wait_for(self._answers)

    def _answers(self) -> bool:
        url = urlsplit(self.url)._replace(path="/postgres").geturl()
        try:
            with psycopg.connect(url, autocommit=True) as connection:
                known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [OWNER])
                if known.fetchone() is None:
                    fresh_database(url, OWNER)
        except psycopg.OperationalError:
            return False
        return True

    def kill(self) -> None:
        """Kill all of its processes at once, as a crash of its machine would."""
        if self._process is not None:
            head = psutil.Process(self._process.pid)
            for process in (head, *head.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            self._process.wait()
            self._process = None

    def remove(self) -> None:
        """End it, whoever is connected, and delete its folder."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def server(programs: Path) -> Iterator[str]:
    """A new server for the length of a `with`; the URL of its one database."""
    made = Server(programs)
    try:
        made.start()
        yield made.url
    finally:
        made.remove()


def fresh_database(url: str, name: str, template: str = "template1") -> str:
    """A new database beside the one that `url` names, empty or like `template`; its URL."""
    create = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(create.format(sql.Identifier(name), sql.Identifier(template)))
    return urlsplit(url)._replace(path=f"/{name}").geturl()


def url_of_the_tests(settings: Mapping[str, Any]) -> str:
    """The URL of the database that this process tests on, for another one to open; any engine's."""
    name = str(settings["NAME"])
    if given := os.environ.get("DATABASE_URL", ""):
        return urlsplit(given)._replace(path=f"/{name}").geturl()
    return f"sqlite:///{name}"


def drop_database(url: str) -> None:
    """Drop the database that `url` names, whoever still uses it."""
    name = urlsplit(url).path.removeprefix("/")
    with psycopg.connect(urlsplit(url)._replace(path="/postgres").geturl(), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def _url(folder: Path, name: str) -> str:
    return f"postgres://{OWNER}@/{name}?host={quote(str(folder), safe='')}"


def _user() -> str | None:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"
