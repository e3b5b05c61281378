"""Backups: written beside writers, checked, and put in place only where they belong."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

import psycopg
import pytest

from console.configuration import config, keys, servers
from console.management import backup, restoration
from console.run.lock import Lock
from tests import postgres


def database_of(home: Path) -> dict[str, Any]:
    return servers.database("sqlite:///db.sqlite3", home, pool=1)


def written(home: Path, file: Path, migrations: tuple[str, ...] = ("jobs.0001_initial",)) -> None:
    """A backup of a folder with keys, a row, a log and an upload."""
    keys.ensure(home)
    with closing(sqlite3.connect(home / "db.sqlite3")) as connection, connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE IF NOT EXISTS t (a)")
        connection.execute("INSERT INTO t VALUES ('before')")
    for name in ("logs/a/m-0", "uploads/ab/abcd"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(name)
    backup.write(
        file, home, database_of(home), shared=home, release="1", made_at="now", migrations=migrations
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def file(home: Path, tmp_path: Path) -> Path:
    written(home, tmp_path / "backup.tar.gz")
    return tmp_path / "backup.tar.gz"


@pytest.fixture(autouse=True)
def _sqlite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "DATABASE_URL", "sqlite:///db.sqlite3")


def rows(home: Path) -> list[str]:
    with closing(sqlite3.connect(home / "db.sqlite3")) as connection:
        return [value for (value,) in connection.execute("SELECT a FROM t")]


def rewritten(file: Path, change: Callable[[str, bytes], bytes]) -> Path:
    """The same archive with other contents."""
    other = file.with_name("other.tar.gz")
    with tarfile.open(file) as archive, tarfile.open(other, "w:gz") as made:
        for member in archive:
            stream = archive.extractfile(member)
            assert stream is not None
            data = change(member.name, stream.read())
            member.size = len(data)
            made.addfile(member, BytesIO(data))
    return other


def test_backup_has_database_keys_logs_and_uploads_and_replaces_no_file(home: Path, file: Path) -> None:
    with tarfile.open(file) as archive:
        names = archive.getnames()
    secrets = [f"keys/{name}" for name in ("fernet", "installation", "redis", "secret_key")]
    assert names == ["database/db.sqlite3", *secrets, "logs/a/m-0", "uploads/ab/abcd", "manifest.json"]
    assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        written(home, file)
    assert sorted(path.name for path in file.parent.iterdir()) == ["backup.tar.gz", "home"]


def test_backup_is_written_while_somebody_writes(home: Path, file: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(home / "db.sqlite3")) as writer:
        writer.execute("INSERT INTO t VALUES ('not committed')")
        written_file = tmp_path / "second.tar.gz"
        backup.write(
            written_file, home, database_of(home), shared=home, release="1", made_at="now", migrations=()
        )
    restoration.restore(written_file, tmp_path / "new")
    assert rows(tmp_path / "new") == ["before"]


def test_restore_puts_everything_back_and_keeps_what_was_there(home: Path, file: Path) -> None:
    before = keys.load(home)
    with closing(sqlite3.connect(home / "db.sqlite3")) as connection, connection:
        connection.execute("UPDATE t SET a = 'after'")
    (home / "logs/a/m-0").write_text("changed")
    (home / "logs/later").write_text("later")
    (home / "jobs").mkdir()
    said = restoration.restore(file, home)
    (aside,) = home.glob("before-restore-*")
    assert str(aside) in said
    assert rows(home) == ["before"]
    assert keys.load(home) == before
    assert (home / "logs/a/m-0").read_text() == "logs/a/m-0"
    assert not (home / "logs/later").exists()
    assert (home / "jobs").is_dir()
    assert (aside / "logs/later").read_text() == "later"
    assert rows(aside) == ["after"]
    assert (home / "keys/fernet").stat().st_mode & 0o777 == 0o600


def test_restore_makes_a_new_folder(file: Path, tmp_path: Path) -> None:
    restoration.restore(file, tmp_path / "new")
    assert rows(tmp_path / "new") == ["before"]
    assert keys.load(tmp_path / "new") == keys.load(tmp_path / "home")


def test_backup_of_several_hosts_has_the_logs_and_uploads_that_they_share(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared, file = tmp_path / "shared", tmp_path / "backup.tar.gz"
    written(home, tmp_path / "other.tar.gz")
    for name in ("logs", "uploads"):
        shutil.move(home / name, shared / name)
    backup.write(file, home, database_of(home), shared=shared, release="1", made_at="now", migrations=())
    (shared / "logs/a/m-0").write_text("changed")
    monkeypatch.setattr(config, "SHARED_FOLDER", str(shared))
    said = restoration.restore(file, home)
    assert (shared / "logs/a/m-0").read_text() == "logs/a/m-0"
    assert (shared / "uploads/ab/abcd").read_text() == "uploads/ab/abcd"
    (aside,) = shared.glob("before-restore-*")
    assert (aside / "logs/a/m-0").read_text() == "changed"
    assert str(aside) in said
    assert not (home / "logs").exists()


def test_verify_changes_nothing(
    home: Path, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert restoration.main([str(file), "--verify"]) == 0
    assert "7 files.\nEverything in it is whole." in capsys.readouterr().out
    broken = rewritten(file, lambda name, data: b"x" + data[1:] if name == "logs/a/m-0" else data)
    assert restoration.main([str(broken), "--verify"]) == 1
    assert "is damaged: logs/a/m-0 is not what was backed up" in capsys.readouterr().err
    assert sorted(each.name for each in home.iterdir()) == ["db.sqlite3", "keys", "logs", "uploads"]


def other_manifest(name: str, data: bytes) -> bytes:
    return data.replace(b'"format": 1', b'"format": 9') if name == "manifest.json" else data


def missing_database(name: str, data: bytes) -> bytes:
    if name != "manifest.json":
        return b"no database" if name.startswith("database/") else data
    value = json.loads(data)
    value["files"]["database/db.sqlite3"] = "0ddf9f5f2a1a0d1e6f4ab3ecb1d4a4f0a9a4ab0c06e4f1b5c5f1c1b1b1b1b1b1"
    return json.dumps(value).encode()


def test_backup_of_a_later_release_or_another_console_is_refused(
    home: Path,
    file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refusal(archive: Path, folder: Path) -> str:
        copy = Path(tempfile.mkdtemp(dir=tmp_path, prefix="")) / "h"  # this process keeps its lock
        shutil.copytree(folder, copy)
        monkeypatch.setattr(config, "HOME", copy)
        assert restoration.main([str(archive)]) == 1
        said = capsys.readouterr().err
        assert said.startswith("Nothing was restored. ")
        assert sorted({each.name for each in copy.iterdir()} - {"run"}) == sorted(
            each.name for each in folder.iterdir()
        )
        return said

    later = tmp_path / "later.tar.gz"
    written(home, later, ("auth.9999_x", "jobs.9999_later"))
    assert "(jobs.9999_later): install that release or a later one." in refusal(later, home)
    keys.ensure(tmp_path / "other")
    assert "belongs to another console" in refusal(file, tmp_path / "other")
    assert "its format is 9" in refusal(rewritten(file, other_manifest), home)
    assert "is not what was backed up" in refusal(rewritten(file, missing_database), home)
    monkeypatch.setattr(config, "DATABASE_URL", "postgres://somebody@127.0.0.1:1/console")
    assert "another kind of database" in refusal(file, home)


def test_restore_is_refused_while_the_console_runs(home: Path, file: Path) -> None:
    (home / "run").mkdir()
    lock = Lock(home / "run" / "lock")
    lock.take("http://127.0.0.1:8000")
    with pytest.raises(RuntimeError, match=r"It already runs at http://127\.0\.0\.1:8000"):
        restoration.restore(file, home)


def test_restore_is_refused_while_another_program_uses_sqlite(
    home: Path, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Programs that were started one by one hold no lock of the folder."""
    monkeypatch.setattr(config, "HOME", home)
    with closing(sqlite3.connect(home / "db.sqlite3")) as writer:
        writer.execute("INSERT INTO t VALUES ('after')")
        writer.commit()
        assert restoration.main([str(file)]) == 1
        assert f"Another process uses {home}/db.sqlite3" in capsys.readouterr().err
        assert rows(home) == ["before", "after"]
        assert not list(home.glob("before-restore-*"))


def test_restore_ends_the_programs_of_a_killed_console(home: Path, file: Path) -> None:
    (home / "run").mkdir()
    with subprocess.Popen(["sleep", "600"]) as left:
        record = {"pid": left.pid, "started": time.time(), "short_lives": 0}
        (home / "run" / "web.process").write_text(json.dumps(record))
        restoration.restore(file, home)
        assert left.poll() is not None
    assert rows(home) == ["before"]


@pytest.mark.postgres
def test_restore_is_refused_while_a_session_uses_postgresql(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such as those of a console on another host."""
    programs = postgres.find_programs()
    if programs is None:
        pytest.skip("there is no PostgreSQL (Debian: postgresql)")
    home, file = tmp_path / "home", tmp_path / "backup.tar.gz"
    with postgres.server(programs) as url, psycopg.connect(url, autocommit=True) as session:
        monkeypatch.setattr(config, "DATABASE_URL", url)
        monkeypatch.setattr(config, "HOME", home)
        keys.ensure(home)
        session.execute("CREATE TABLE t AS SELECT 'before' AS a")
        database = servers.database(url, home, pool=1)
        backup.write(file, home, database, shared=home, release="1", made_at="now", migrations=())
        session.execute("UPDATE t SET a = 'after'")
        assert restoration.main([str(file)]) == 1
        assert "The database has sessions from its own host (1): stop" in capsys.readouterr().err
        assert session.execute("SELECT a FROM t").fetchall() == [("after",)]
        session.close()
        monkeypatch.setattr(config, "HOME", tmp_path / "new")  # this process keeps the lock of the other
        assert restoration.main([str(file)]) == 0
        with psycopg.connect(url) as look:
            assert look.execute("SELECT a FROM t").fetchall() == [("before",)]
