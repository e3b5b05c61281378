"""`doctor`: what this machine and the settings lack, each thing with what to do about it.

It works before the first start: what needs keys or tables is left out until there are some.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import smtplib
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import django
import redis
from django.core.checks import ERROR, run_checks
from django.core.mail import get_connection
from django.db import DatabaseError, connection

from console.configuration import env, filesystem, keys
from console.run import broker, preflight
from jobs.backends.local import machine
from jobs.node import disk
from jobs.node.sandbox import engine
from jobs.node.sandbox.isolation import Isolation
from jobs.node.wrapper import cgroups

DISK_FLOOR_MIB: Final = 5120
"""The default of CONSOLE_DISK_FLOOR_MIB: the settings can't be read before there are keys."""

_CLOCK_UNSYNCHRONISED: Final = 5
"""TIME_ERROR of adjtimex(2)."""

_TIMEX_BYTES: Final = 512
"""More than `struct timex` has anywhere."""


class Level(StrEnum):
    """How bad a finding is; with something missing the console does not start or does not work."""

    OK = "ok"
    WARNING = "warning"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at, with what to do where something is wrong."""

    level: Level
    about: str
    text: str


def main() -> int:
    """Print a line for each thing; return 1 if something is missing, else 0."""
    found = []
    for each in examine():
        found.append(each.level)
        print(f"{each.level:<8} {each.about}: {each.text}", flush=True)
    print(f"\n{found.count(Level.MISSING)} missing, {found.count(Level.WARNING)} warnings.")
    return 1 if Level.MISSING in found else 0


def examine() -> Iterator[Finding]:
    """Yield every finding, in the order in which things build on each other."""
    yield Finding(Level.OK, "Python", ".".join(map(str, sys.version_info[:3])))
    yield _check_clock()
    try:
        yield from _check_environment()
        yield from _check_machine()
        yield from _check_settings()
    except env.EnvError as problem:
        yield Finding(Level.MISSING, "settings", str(problem))
    except keys.KeysMissing as problem:
        yield Finding(Level.WARNING, "keys", f"{problem} Until then the settings are not checked.")


def _check_clock() -> Finding:
    """Ask the kernel whether something keeps its clock right."""
    state = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    if state == _CLOCK_UNSYNCHRONISED:
        text = "nothing synchronizes it: install chrony, or run `timedatectl set-ntp true`"
        return Finding(Level.WARNING, "clock", text)
    return Finding(Level.OK, "clock", "synchronized" if state >= 0 else "can't be asked")


def _check_environment() -> Iterator[Finding]:
    """Yield what the environment alone tells: folder, disk, port, broker, tools of the database."""
    from console.configuration import config  # noqa: PLC0415  # raises EnvError

    yield from _check_home(config.HOME)
    if _is_running(config.HOME):
        yield Finding(Level.OK, "port", f"this console has it ({config.BIND}:{config.PORT})")
    else:
        try:
            preflight.port(config.BIND, config.PORT).close()
            yield Finding(Level.OK, "port", f"{config.BIND}:{config.PORT} is free")
        except preflight.CannotStart as problem:
            yield Finding(Level.MISSING, "port", str(problem))
    server = None if config.REDIS_URL else broker.find_server()
    if config.REDIS_URL or server:
        yield Finding(Level.OK, "Redis", str(server or "the server of REDIS_URL"))
    else:
        text = "install redis-server or valkey-server, 6.2 or newer, or set REDIS_URL to a server"
        yield Finding(Level.MISSING, "Redis", text)
    has_tools = shutil.which("pg_dump") and shutil.which("pg_restore")
    if config.DATABASE_URL.startswith("postgres") and not has_tools:
        text = "pg_dump and pg_restore are not installed: Debian has them in postgresql-client"
        yield Finding(Level.WARNING, "backup", text)


def _check_home(home: Path) -> Iterator[Finding]:
    nearest = next(each for each in (home, *home.parents) if each.is_dir())
    if kind := filesystem.network_filesystem(nearest):
        text = f"{home} lies on a network file system ({kind}): set CONSOLE_HOME to a folder on a local disk"
        yield Finding(Level.MISSING, "folder", text)
    elif not os.access(nearest, os.W_OK | os.X_OK):
        yield Finding(Level.MISSING, "folder", f"{nearest} can't be written: set CONSOLE_HOME to another one")
    elif home.is_dir() and (mode := stat.S_IMODE(home.stat().st_mode)) & 0o077:
        yield Finding(Level.MISSING, "folder", f"{home} is open to others ({mode:04o}): chmod 700 {home}")
    else:
        yield Finding(Level.OK, "folder", f"{home}{'' if home.is_dir() else ', made at the first start'}")
    free = disk.free_mib(nearest)
    if free < DISK_FLOOR_MIB:
        text = f"{free} MiB free in {nearest}: no job starts below {DISK_FLOOR_MIB} (CONSOLE_DISK_FLOOR_MIB)"
        yield Finding(Level.WARNING, "disk", text)
    else:
        yield Finding(Level.OK, "disk", f"{free >> 10} GiB free")


def _is_running(home: Path) -> bool:
    try:
        with (home / "run" / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _check_machine() -> Iterator[Finding]:
    """Yield what jobs on this machine need; none of it matters to a console for Slurm alone."""
    isolation = machine.detect_isolation(sys.executable)
    if isolation is Isolation.NONE:
        text = "none: one person only; allow user namespaces, or start as root"
        yield Finding(Level.WARNING, "isolation of jobs", text)
    else:
        yield Finding(Level.OK, "isolation of jobs", isolation)
    if lacking := machine.network_lacks(isolation):
        text = f"jobs share this machine's network; for their own, install or allow {', '.join(lacking)}"
        yield Finding(Level.WARNING, "network of jobs", text)
    else:
        yield Finding(Level.OK, "network of jobs", "each has its own")
    if cgroups.usable() is None:
        text = "no control groups can be made: limits of memory and CPU are watched, not held by the kernel"
        yield Finding(Level.WARNING, "limits of jobs", text)
    else:
        yield Finding(Level.OK, "limits of jobs", "held by control groups")
    found = engine.detect("auto", ())
    if found.command:
        yield Finding(Level.OK, "images", " ".join(found.command))
    else:
        text = "neither podman nor docker answers: install podman for jobs with images"
        yield Finding(Level.WARNING, "images", text)
    gpus = machine.total(None, None, None).gpus
    yield Finding(Level.OK, "GPUs", ", ".join(sorted(each.type for each in gpus)) or "none found")


def _check_settings() -> Iterator[Finding]:
    """Yield what Django's checks find, and which servers don't answer.  Raises EnvError, KeysMissing."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    django.setup(set_prefix=False)
    from django.conf import settings  # noqa: PLC0415  # raises EnvError, KeysMissing

    with_tables = False
    try:
        with_tables = "django_migrations" in connection.introspection.table_names()
        text = connection.vendor if with_tables else f"{connection.vendor}, without tables yet"
        yield Finding(Level.OK, "database", text)
    except DatabaseError as problem:
        yield Finding(Level.MISSING, "database", f"it does not answer: {problem}; look at DATABASE_URL")
    for message in run_checks(tags=["console"], databases=["default"] if with_tables else None):
        level = Level.MISSING if message.level >= ERROR else Level.WARNING
        yield Finding(level, str(message.id), f"{message.msg} {message.hint or ''}".strip())
    if not settings.CONSOLE_REDIS_IS_PRIVATE:
        yield _check_redis(settings.REDIS_URL)
    if settings.CONSOLE_MAIL:
        yield _check_mail()
    if settings.CONSOLE_LDAP:
        yield _check_directory()


def _check_redis(url: str) -> Finding:
    try:
        with redis.Redis.from_url(url, socket_timeout=2, socket_connect_timeout=2) as client:
            client.ping()
    except (OSError, redis.RedisError) as problem:
        return Finding(Level.MISSING, "Redis", f"it does not answer: {problem}; look at REDIS_URL")
    return Finding(Level.OK, "Redis", "it answers")


def _check_mail() -> Finding:
    try:
        server = get_connection(timeout=5)
        server.open()
        server.close()
    except (OSError, smtplib.SMTPException) as problem:
        return Finding(Level.MISSING, "mail", f"the server does not answer: {problem}; look at CONSOLE_MAIL")
    return Finding(Level.OK, "mail", "the server answers")


def _check_directory() -> Finding:
    try:
        from console.sign_in import directory  # noqa: PLC0415  # its library is optional
    except ImportError:
        return Finding(Level.MISSING, "directory", "the LDAP library is not installed: job-console[ldap]")
    if problem := directory.find_trouble():
        return Finding(Level.MISSING, "directory", f"it does not answer: {problem}; look at CONSOLE_LDAP")
    return Finding(Level.OK, "directory", "it answers")
