"""`restore FILE`: put a backup in place of what is there, or only check it.

It works before there are keys or a database.  What it replaces is moved aside, and stays.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from console.configuration import config, servers
from console.configuration.env import EnvError
from console.home import CHECKOUT
from console.management import backup, database_dump
from console.management.backup import BadBackup, Manifest
from console.management.database_dump import DatabaseInUse, DumpFailed
from console.run import preflight
from console.run.lock import AlreadyRunning, Lock
from console.run.stale_processes import clear

_APPS: Final = ("console", "jobs", "quotas")
"""The apps whose migrations lie in the packages of their own names."""


def main(arguments: Sequence[str]) -> int:
    """Restore or check; return 0, or 1 after a sentence."""
    parser = argparse.ArgumentParser(
        prog="restore",
        description="Put a backup in place of database, keys, logs and uploads; what they were is kept.",
    )
    parser.add_argument("file", type=Path, help="a file that `backup` wrote")
    parser.add_argument("--verify", action="store_true", help="only check the file")
    options = parser.parse_args(arguments)
    os.umask(0o077)
    try:
        print(verify(options.file) if options.verify else restore(options.file, config.HOME))
    except (
        AlreadyRunning,
        BadBackup,
        DatabaseInUse,
        DumpFailed,
        EnvError,
        OSError,
        preflight.CannotStart,
    ) as problem:
        print(f"Nothing was restored. {problem}", file=sys.stderr)
        return 1
    return 0


def verify(file: Path) -> str:
    """Check a backup without changing anything; return what it has.  Raises BadBackup, DumpFailed."""
    with tempfile.TemporaryDirectory(prefix="job-console-") as folder:
        return f"{_describe(_extract(file, Path(folder)))}\nEverything in it is whole."


def restore(file: Path, home: Path) -> str:
    """Put a backup in place; return what to say.

    Raises AlreadyRunning while a console runs there, DatabaseInUse while others use the database (a console
    on another host, say), BadBackup, CannotStart, DumpFailed and EnvError; then everything is as it was.
    """
    preflight.home(home)
    Lock(home / "run" / "lock").take("a restore")
    database = servers.database(config.DATABASE_URL, home, pool=1)
    with tempfile.TemporaryDirectory(dir=home, prefix="restore-") as folder:
        staged = Path(folder)
        manifest = _extract(file, staged)
        copy = staged / database_dump.name_of(database)
        _check_belongs(manifest, home, copy)
        clear(home / "run")  # of a console that was killed: its lock went with it, its programs may live
        database_dump.check_unused(database)
        if copy.name == Path(database_dump.POSTGRESQL_DUMP).name:
            database_dump.load_postgresql(copy, database)
        aside = sorted(map(str, _replace(staged, home, Path(config.SHARED_FOLDER or home), database)))
    before = f" What was there before lies in {' and '.join(aside)}; remove it once all is well." * bool(
        aside
    )
    return (
        f"{_describe(manifest)}\nIt is restored.{before}\n"
        "Start the console. Jobs that the backup does not know, and that still run, are listed by "
        "`orphans` and on Administration, Incidents."
    )


def _extract(file: Path, folder: Path) -> Manifest:
    manifest = backup.extract(file, folder)
    copies = sorted((folder / "database").glob("*"))
    if len(copies) != 1:
        raise BadBackup(f"{file} has no database.")
    database_dump.check(copies[0])
    return manifest


def _check_belongs(manifest: Manifest, home: Path, copy: Path) -> None:
    """Check that this release, folder and database can take the backup.  Raises BadBackup."""
    newer = [name for name in manifest.migrations if not _has_migration(name)]
    if newer:
        raise BadBackup(
            f"The backup is of release {manifest.release}, whose tables this release does not know "
            f"({newer[-1]}): install that release or a later one."
        )
    installation = home / "keys" / "installation"
    if installation.exists() and installation.read_text(encoding="ascii").strip() != manifest.installation:
        raise BadBackup(
            f"{home} belongs to another console than the backup: set CONSOLE_HOME to an empty folder, or to "
            "the folder of that console."
        )
    if not copy.exists():
        raise BadBackup(
            "The backup is of another kind of database than DATABASE_URL names: set it as it was, SQLite or "
            "PostgreSQL."
        )


def _has_migration(name: str) -> bool:
    app, _dot, migration = name.partition(".")
    return app not in _APPS or (CHECKOUT / app / "migrations" / f"{migration}.py").is_file()


def _replace(staged: Path, home: Path, shared: Path, database: dict[str, Any]) -> set[Path]:
    """Move what is there aside, and what was restored in its place; return the folders of the former."""
    moves = [(staged / name, parent, parent / name) for name, parent in backup.locate(home, shared)]
    if database["ENGINE"] == servers.SQLITE:
        file = Path(database["NAME"])
        copies = (("none-wal", "-wal"), ("none-shm", "-shm"), (database_dump.SQLITE_COPY, ""))
        moves += [(staged / name, home, file.with_name(file.name + end)) for name, end in copies]
    name = f"before-restore-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    for source, parent, target in moves:
        if target.exists():
            (parent / name).mkdir(mode=0o700, exist_ok=True)
            target.rename(parent / name / target.name)
        if source.exists():
            shutil.move(source, target)  # the folder that hosts share is on another file system
    return {parent / name for _source, parent, _target in moves if (parent / name).exists()}


def _describe(manifest: Manifest) -> str:
    return (
        f"Backup of {manifest.made_at}, release {manifest.release}, installation {manifest.installation}: "
        f"{len(manifest.files)} files."
    )
