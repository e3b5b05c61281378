"""Parsing of DATABASE_URL, REDIS_URL and CONSOLE_MAIL."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from console.configuration.env import EnvError
from console.configuration.tls import Mode, Tls

SQLITE = "console.sqlite"
_SQLITE_SECONDS_TO_WAIT = 20
_SQLITE_INIT = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
_LOST_HOSTS = {
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
    "options": (
        "-c idle_in_transaction_session_timeout=30s "
        "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
    ),
}
"""Options of libpq by which client and server notice in half a minute that the other's host is lost.

Without them a server keeps the locks of such a session for two hours, and everybody else waits for them; a
client waits a quarter of an hour for an answer.
"""
_MAIL_PORTS = {"smtp": 587, "smtps": 465, "smtp+plain": 25}


def database(url: str, home: Path, *, pool: int) -> dict[str, Any]:
    """Django's settings for the database that `url` names.

    `sqlite:///file` lies under `home` unless the path is absolute (four slashes).
    `postgres://user:password@host:port/name` takes libpq's options as a query, a folder with a Unix socket as
    `?host=/folder`; each process keeps at most `pool` connections. Raises `EnvError`.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as problem:
        raise EnvError(f"DATABASE_URL cannot be read: {problem}.") from problem
    if parts.scheme == "sqlite":
        return _sqlite(parts.path, home)
    if parts.scheme in ("postgres", "postgresql"):
        name = unquote(parts.path.removeprefix("/"))
        if not name:
            raise EnvError("DATABASE_URL names no database: postgres://user:password@host:port/name.")
        options = dict(parse_qsl(parts.query))
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": name,
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": options.pop("host", None) or unquote(parts.hostname or ""),
            "PORT": str(port or ""),
            "CONN_HEALTH_CHECKS": True,
            # Under ASGI each request has a thread of its own, where CONN_MAX_AGE keeps nothing: hence a pool.
            "OPTIONS": {**_LOST_HOSTS, **options, "pool": {"min_size": 1, "max_size": pool, "timeout": 5}},
        }
    raise EnvError(
        f"DATABASE_URL must begin with postgres:// or sqlite:///, not {parts.scheme or 'nothing'}://."
    )


def _sqlite(path: str, home: Path) -> dict[str, Any]:
    file = unquote(path.removeprefix("/"))
    if not file:
        raise EnvError("DATABASE_URL names no file: sqlite:///db.sqlite3.")
    return {
        "ENGINE": SQLITE,
        "NAME": str(home / file),
        # A file in tests too: a shared in-memory database locks whole tables and knows no WAL.
        "TEST": {"NAME": str(home / "test.sqlite3")},
        # To open it takes longer than most queries: threads that stay keep it for a while.
        "CONN_MAX_AGE": 60,
        "OPTIONS": {
            "timeout": _SQLITE_SECONDS_TO_WAIT,
            "transaction_mode": "IMMEDIATE",  # a writer waits for its turn instead of failing halfway
            "init_command": _SQLITE_INIT,
        },
    }


def private_socket(home: Path) -> Path:
    """Return the socket of the server that `make run` starts."""
    return home / "run" / "redis.sock"


def private_redis(home: Path, password: str) -> str:
    """The REDIS_URL of that server."""
    return f"unix://:{quote(password, safe='')}@{quote(str(private_socket(home)))}?db=0"


def celery_broker(redis_url: str) -> str:
    """The same server in the words of Celery. Raises `EnvError` for anything but Redis."""
    parts = urlsplit(redis_url)
    if parts.scheme in ("redis", "rediss") and parts.hostname:
        return redis_url
    if parts.scheme == "unix" and parts.path:
        number = dict(parse_qsl(parts.query)).get("db", "0")
        return f"redis+socket://{parts.netloc}{parts.path}?virtual_host={number}"
    raise EnvError(
        "REDIS_URL must be redis://host:port/0, rediss://host:port/0 or unix:///path/to/socket?db=0."
    )


@dataclass(frozen=True, slots=True)
class Mail:
    """Django's settings of one e-mail server; of none, e-mail goes nowhere."""

    backend: str = "django.core.mail.backends.dummy.EmailBackend"
    host: str = ""
    port: int = 0
    user: str = ""
    password: str = ""
    starttls: bool = False
    tls: bool = False


def mail(url: str) -> Mail:
    """Parse CONSOLE_MAIL: `smtp://`, `smtps://` or `smtp+plain://`, user and password escaped.

    Raises `EnvError`, without the URL: it holds a password.
    """
    if not url:
        return Mail()
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as problem:
        raise EnvError("CONSOLE_MAIL cannot be read.") from problem
    if parts.scheme not in _MAIL_PORTS or not parts.hostname:
        raise EnvError("CONSOLE_MAIL must be smtp://host:587, smtps://host:465 or smtp+plain://host:25.")
    if parts.password and parts.scheme == "smtp+plain":
        raise EnvError("CONSOLE_MAIL would send its password unencrypted: use smtp:// or smtps://.")
    return Mail(
        backend="django.core.mail.backends.smtp.EmailBackend",
        host=parts.hostname,
        port=port or _MAIL_PORTS[parts.scheme],
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        starttls=parts.scheme == "smtp",
        tls=parts.scheme == "smtps",
    )


def address(hosts: Sequence[str], port: int, tls: Tls) -> str:
    """Return the console's default address: the first of its host names that is no pattern."""
    host = next((each for each in hosts if each != "*" and not each.startswith(".")), "localhost")
    return f"https://{host}" if tls.mode is Mode.PROXY else f"{tls.scheme}://{host}:{port}"
