"""A private PostgreSQL server for one run of the tests: on a Unix socket, and gone afterwards."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import psycopg
from psycopg import sql

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


@contextmanager
def server(programs: Path) -> Iterator[str]:
    """A new server for the length of a `with`; the URL of its one database."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    user = _user()
    try:
        if user is not None:
            shutil.chown(folder, user)
        data = folder / "data"
        options = ["-U", OWNER, "-A", "trust", "-E", "UTF8", "--no-locale", "-N"]
        initdb = [str(programs / "initdb"), "-D", str(data), *options]
        subprocess.run(initdb, check=True, user=user, cwd=folder, stdout=subprocess.DEVNULL)
        # -F: no fsync, nothing here outlives the tests.
        options = ["-k", str(folder), "-h", "", "-F", *(word for each in SETTINGS for word in ("-c", each))]
        command = [str(programs / "postgres"), "-D", str(data), *options]
        with (
            (folder / "log").open("wb") as log,
            subprocess.Popen(command, user=user, cwd=folder, stderr=log) as process,
        ):
            if user is not None:  # root may
                os.setpriority(os.PRIO_PROCESS, process.pid, PRIORITY)
            try:
                yield wait_for(lambda: _create(_url(folder, "postgres"), OWNER))
            finally:
                process.terminate()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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


def _create(url: str, name: str) -> str:
    """The new database's URL, or nothing while the server does not answer yet."""
    try:
        return fresh_database(url, name)
    except psycopg.OperationalError:
        return ""


def _url(folder: Path, name: str) -> str:
    return f"postgres://{OWNER}@/{name}?host={quote(str(folder), safe='')}"


def _user() -> str | None:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"
