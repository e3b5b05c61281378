"""A database with every table, and static files as they are served: made once per checkout, then copied.

All migrations take half a minute, static files four seconds. What a start makes of an empty folder is tested
by `tests/console/run/test_run.py`; everybody else begins here.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from console.configuration import keys
from console.home import CHECKOUT

FOLDER: Final = CHECKOUT / ".pytest_cache" / "prepared"
DATABASE: Final = "db.sqlite3"


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def copy_database(to: Path) -> None:
    """Make the file `to` a SQLite database with all tables and nobody in it."""
    with _one_at_a_time():
        shutil.copyfile(_home() / DATABASE, to)


def copy_home(to: Path) -> None:
    """Give the folder `to` keys, static files and a SQLite database, as an earlier start left them."""
    keys.ensure(to)  # first: a database without its keys is refused
    with _one_at_a_time():
        shutil.copy(_home() / DATABASE, to / DATABASE)
        shutil.copytree(_home() / "static", to / "static")


def template(url: str) -> str:
    """A database with all tables on the PostgreSQL server of `url`: its name, once there is one."""
    name = f"prepared_{_digest()}"
    with _one_at_a_time(), psycopg.connect(url, autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
            draft = f"{name}_draft"  # a template that was left half made is none
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(draft)))
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(draft)))
            with tempfile.TemporaryDirectory() as home:
                _make(Path(home), urlsplit(url)._replace(path=f"/{draft}").geturl(), "migrate")
            rename = sql.SQL("ALTER DATABASE {} RENAME TO {}")
            connection.execute(rename.format(sql.Identifier(draft), sql.Identifier(name)))
    return name


def _home() -> Path:
    """A folder as a start leaves it, but for keys and people; whoever calls has the lock."""
    home = FOLDER / _digest()
    if not home.is_dir():
        for other in FOLDER.iterdir():
            if other.is_dir():
                shutil.rmtree(other)
        draft = FOLDER / "draft"
        _make(draft, "", "migrate", "collect")
        shutil.rmtree(draft / "keys")
        draft.rename(home)
    return home


def _make(home: Path, database_url: str, *what: str) -> None:
    keys.ensure(home)
    code = {
        "migrate": "from django.core.management import call_command; call_command('migrate', verbosity=0)",
        "collect": "from console.server.statics import collect_if_changed; collect_if_changed()",
    }
    lines = "\n".join(["import django; django.setup()", *(code[each] for each in what)])
    ours = {
        "CONSOLE_HOME": str(home),
        "DATABASE_URL": database_url,
        "DJANGO_SETTINGS_MODULE": "console.settings",
    }
    environ = {**os.environ, **ours}
    # The umask is a console's own.
    subprocess.run([sys.executable, "-c", lines], cwd=CHECKOUT, env=environ, umask=0o077, check=True)


def _digest() -> str:
    """Changes with our migrations, with what is installed, and with any static file."""
    digest = hashlib.sha256()
    for path in sorted(CHECKOUT.glob("*/migrations/*.py")):
        digest.update(f"{path}\0".encode() + path.read_bytes())
    for path in sorted(CHECKOUT.glob("requirements*.lock")):
        digest.update(path.read_bytes())
    for path in [CHECKOUT / "console/server/statics.py", *sorted((CHECKOUT / "static").rglob("*"))]:
        seen = path.stat()
        digest.update(f"{path}\0{seen.st_size}\0{seen.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]
