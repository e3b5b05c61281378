"""Consistent copies of the database, made while others use it, and their way back.

SQLite is copied by its online backup, PostgreSQL by `pg_dump`, in one transaction each.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg.conninfo import make_conninfo

from console.configuration.servers import SQLITE

SQLITE_COPY: Final = "database/db.sqlite3"
POSTGRESQL_DUMP: Final = "database/postgresql.dump"
_PAGES: Final = 1024
"""Pages that SQLite copies at a time; writers go on in between."""

_OURS: Final = frozenset({"pool"})
"""Options of a connection that are Django's, not libpq's."""

_REMOVAL: Final = """\
DO $$ DECLARE each record; BEGIN
  FOR each IN
    SELECT relname,
      CASE relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'TABLE' END AS kind
    FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm')
  LOOP EXECUTE format('DROP %s IF EXISTS public.%I CASCADE', each.kind, each.relname); END LOOP;
END $$;
"""


_SESSIONS: Final = """\
SELECT
  coalesce(host(client_addr), CASE client_port WHEN -1 THEN 'its own host' ELSE 'a hidden host' END),
  count(*)
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND usesysid IS NOT NULL
GROUP BY 1 ORDER BY 1
"""
"""Sessions by host; -1 is the port of a Unix socket.  PostgreSQL's own processes have no user."""


class DumpFailed(Exception):
    """The database could not be copied, checked or restored; the message is one sentence."""


class DatabaseInUse(Exception):
    """Error for a database that is to be replaced and that others use; it says who, and what to do."""


def name_of(database: Mapping[str, Any]) -> str:
    """Return the name that the copy of a database (Django's settings of it) has in a backup."""
    return SQLITE_COPY if database["ENGINE"] == SQLITE else POSTGRESQL_DUMP


def dump(database: Mapping[str, Any], to: Path) -> None:
    """Write a copy of the database into a new file.  Raises DumpFailed."""
    if database["ENGINE"] != SQLITE:
        _call("pg_dump", ["--format=custom", "--no-owner", "--no-privileges", f"--file={to}"], database)
        return
    try:
        with (
            closing(sqlite3.connect(f"{Path(database['NAME']).as_uri()}?mode=rw", uri=True)) as source,
            closing(sqlite3.connect(to)) as target,
        ):
            source.backup(target, pages=_PAGES, sleep=0.01)
    except sqlite3.Error as problem:
        raise DumpFailed(f"The database could not be copied: {problem}.") from problem


def check(copy: Path) -> None:
    """Check that a copy is whole.  Raises DumpFailed."""
    if copy.name == Path(POSTGRESQL_DUMP).name:
        _call("pg_restore", ["--list", str(copy)], None)
        return
    try:
        with closing(sqlite3.connect(f"{copy.absolute().as_uri()}?immutable=1", uri=True)) as connection:
            (answer,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.Error as problem:
        raise DumpFailed(f"The copy of the database is broken: {problem}.") from problem
    if answer != "ok":
        raise DumpFailed(f"The copy of the database is broken: {answer}.")


def check_unused(database: Mapping[str, Any]) -> None:
    """Check that nobody uses the database, from whatever host.  Raises DatabaseInUse, DumpFailed."""
    if database["ENGINE"] == SQLITE:
        _check_sqlite_unused(Path(database["NAME"]))
    else:
        _check_postgresql_unused(database)


def _check_sqlite_unused(file: Path) -> None:
    """Ask for SQLite's exclusive lock, which no other process has to share.

    With a write-ahead log each connection holds a shared lock of the file until it is closed.
    """
    if not file.exists():
        return
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=rw", uri=True, timeout=0)) as connection:
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as problem:
        if problem.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise DumpFailed(f"The database could not be opened: {problem}.") from problem
        raise DatabaseInUse(f"Another process uses {file}: stop every program of the console.") from None
    except sqlite3.DatabaseError:
        return  # a broken one is what is replaced


def _check_postgresql_unused(database: Mapping[str, Any]) -> None:
    try:
        with psycopg.connect(_conninfo(database), password=database["PASSWORD"] or None) as connection:
            sessions = connection.execute(_SESSIONS).fetchall()
    except psycopg.OperationalError as problem:
        raise DumpFailed(f"The database can't be reached: {str(problem).strip()}") from problem
    if sessions:
        hosts = ", ".join(f"{host} ({count})" for host, count in sessions)
        raise DatabaseInUse(
            f"The database has sessions from {hosts}: stop the console on every host, and whatever else uses "
            "the database; pg_stat_activity lists the sessions."
        )


def load_postgresql(copy: Path, database: Mapping[str, Any]) -> None:
    """Replace the tables on a PostgreSQL server by those of a copy: all, or, with DumpFailed, none.

    Tables that the copy does not have go too: a later release would make them once more.
    """
    script, removal = copy.with_suffix(".sql"), copy.with_name("removal.sql")
    _call("pg_restore", ["--no-owner", "--no-privileges", f"--file={script}", str(copy)], None)
    removal.write_text(_REMOVAL, encoding="ascii")
    options = ["--no-psqlrc", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1"]
    _call("psql", [*options, f"--file={removal}", f"--file={script}"], database)


def _call(program: str, arguments: Sequence[str], database: Mapping[str, Any] | None) -> None:
    """Run a program of PostgreSQL's; the password reaches it by the environment, where nobody sees it."""
    environ = dict(os.environ)
    command = [program, *arguments]
    if database is not None:
        environ["PGPASSWORD"] = database["PASSWORD"]
        command.insert(1, f"--dbname={_conninfo(database)}")
    try:
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise DumpFailed(f"{program} is not installed; Debian has it in postgresql-client.") from None
    if done.returncode:
        raise DumpFailed(f"{program} failed: {done.stderr.strip() or done.returncode}")


def _conninfo(database: Mapping[str, Any]) -> str:
    """Return how libpq connects to the database, without the password."""
    options = {name: value for name, value in database["OPTIONS"].items() if name not in _OURS}
    named = {"dbname": "NAME", "user": "USER", "host": "HOST", "port": "PORT"}
    where = {word: database[key] for word, key in named.items() if database[key]}
    return make_conninfo(**where, **options)
