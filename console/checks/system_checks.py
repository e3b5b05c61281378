"""System checks: what is misconfigured, each with an id that docs/checks.md explains.

`manage.py check` runs them, and so does every start; with `--deploy`, those that ask a server too.
"""

import ipaddress
import os
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import redis
from cryptography.fernet import Fernet
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register  # noqa: A004
from django.db import DatabaseError, connection

from console.configuration import identities, single
from console.configuration.filesystem import network_filesystem
from console.configuration.keys import INSTALLATION_LENGTH
from console.configuration.servers import SQLITE
from console.run.broker import find_server
from console.sign_in import ldapconfig, providers
from quotas.models import User
from quotas.models.single_person import Exposure

SHORTEST_SECRET = 50
MOST_SQLITE_WRITERS = 4
BROKER_SECONDS = 1.0


@register("console")
def check_home(**kwargs: Any) -> list[CheckMessage]:
    """CONSOLE_HOME lies on a local disk and is nobody else's business."""
    home: Path = settings.CONSOLE_HOME
    found: list[CheckMessage] = []
    if kind := network_filesystem(home):
        hint = "Set CONSOLE_HOME to a folder on a local disk."
        found.append(Error(f"{home} lies on a network file system ({kind}).", hint=hint, id="console.E001"))
    if home.is_dir() and _open_to_others(home):
        found.append(Error(f"{home} is open to other users.", hint=f"chmod 700 {home}", id="console.E002"))
    return found


@register("console")
def check_hosts(**kwargs: Any) -> list[CheckMessage]:
    """Several hosts have one database and one Redis, and their folder is there."""
    if not settings.CONSOLE_HAS_SEVERAL_HOSTS:
        return []
    found: list[CheckMessage] = []
    folder: Path = settings.CONSOLE_SHARED_FOLDER
    if not os.access(folder, os.W_OK | os.X_OK):
        hint = "Make it on the file system that all hosts mount."
        found.append(Error(f"CONSOLE_SHARED_FOLDER {folder} can't be written.", hint=hint, id="console.E019"))
    own = [name for name, is_own in _OWN_SERVERS if is_own()]
    if own:
        text = f"CONSOLE_SHARED_FOLDER is for several hosts, which need {' and '.join(own)} in common."
        found.append(Error(text, hint="Name servers that all hosts reach.", id="console.E020"))
    return found


_OWN_SERVERS: Final[Sequence[tuple[str, Callable[[], bool]]]] = (
    ("DATABASE_URL", lambda: connection.vendor == SQLITE),
    ("REDIS_URL", lambda: bool(settings.CONSOLE_REDIS_IS_PRIVATE)),
)


@register("console")
def check_keys(**kwargs: Any) -> list[CheckMessage]:
    """The keys are ours alone, and are keys."""
    return list(_key_problems())


def _key_problems() -> Iterator[CheckMessage]:
    for path in sorted((settings.CONSOLE_HOME / "keys").glob("[!.]*")):
        if _open_to_others(path):
            yield Error(f"{path} is open to other users.", hint=f"chmod 600 {path}", id="console.E003")
    if len(settings.SECRET_KEY) < SHORTEST_SECRET or len(set(settings.SECRET_KEY)) < 5:
        hint = (
            "Put a new key on the file's first line. With the old one below it sign-ins and access tokens go "
            "on; without it everybody signs in and makes tokens again."
        )
        yield Error("keys/secret_key can be guessed.", hint=hint, id="console.E004")
    for number, key in enumerate(settings.CONSOLE_FERNET_KEYS, start=1):
        if not _is_fernet_key(key):
            yield Error(f"Line {number} of keys/fernet is not a Fernet key.", id="console.E005")
    name = settings.CONSOLE_INSTALLATION
    if len(name) != INSTALLATION_LENGTH or not (name.isascii() and name.isalnum() and name == name.lower()):
        hint = "It is part of jobs' names: restore it from a backup rather than making a new one."
        yield Error("keys/installation is not 6 characters of a-z and 0-9.", hint=hint, id="console.E006")


@register("console")
def check_network(**kwargs: Any) -> list[CheckMessage]:
    """Warn where the console is open to the network without being set up for it."""
    found: list[CheckMessage] = []
    local = _is_loopback(settings.CONSOLE_BIND)
    if settings.DEBUG and not local:
        hint = "Debug pages show settings and source: unset CONSOLE_DEBUG or CONSOLE_BIND."
        found.append(
            Error(
                f"CONSOLE_DEBUG is on while listening on {settings.CONSOLE_BIND}.",
                hint=hint,
                id="console.E007",
            )
        )
    if not local and not settings.CONSOLE_TLS:
        hint = "Set CONSOLE_TLS: `auto`, a certificate, or `proxy` with CONSOLE_TRUSTED_PROXIES."
        found.append(Warning("Passwords cross the network unencrypted.", hint=hint, id="console.W001"))
    if "*" in settings.CONSOLE_HOSTS:
        found.append(
            Warning("CONSOLE_HOSTS admits every name.", hint="List the console's own.", id="console.W002")
        )
    apps = f".{settings.CONSOLE_APPS_DOMAIN.lstrip('.')}"
    if any(f".{host.lstrip('.')}".endswith(apps) for host in settings.CONSOLE_HOSTS):
        hint = "Jobs' pages must not share the console's name: give CONSOLE_APPS_DOMAIN another."
        found.append(
            Error("A name in CONSOLE_HOSTS lies under CONSOLE_APPS_DOMAIN.", hint=hint, id="console.E008")
        )
    return found


@register("console")
def check_servers(**kwargs: Any) -> list[CheckMessage]:
    """There is a broker to start, and the database is up to the workers."""
    found: list[CheckMessage] = []
    if settings.CONSOLE_REDIS_IS_PRIVATE and find_server() is None:
        hint = "Install redis-server or valkey-server (6.2 or newer), or set REDIS_URL to a server."
        found.append(Error("There is no Redis to start.", hint=hint, id="console.E009"))
    sqlite = settings.DATABASES["default"]["ENGINE"] == SQLITE
    if sqlite and sum(settings.CONSOLE_WORKERS.values()) > MOST_SQLITE_WRITERS:
        hint = "SQLite has one writer at a time: set DATABASE_URL to a PostgreSQL server, or fewer workers."
        found.append(Warning("More workers than SQLite can serve.", hint=hint, id="console.W003"))
    return found


@register("console")
def check_single_person(*, databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Refuse more than one account where jobs run as the console's own user.

    It asks the database which clusters and accounts there are, so it runs only where that is allowed: at
    every start, and with `--database default`.
    """
    if not databases or settings.CONSOLE_TRUST_EVERYBODY:
        return []
    reachable = not _is_loopback(settings.CONSOLE_BIND)
    try:
        several = single.accounts() > 1
        found = single.exposures() if reachable or several else frozenset()
    except DatabaseError:  # `migrate` checks before there are tables, and so before there is anybody
        return []
    problems: list[CheckMessage] = []
    if Exposure.FILES in found:
        why = f"it listens on {settings.CONSOLE_BIND}" if reachable else "there is more than one account"
        hint = (
            "Start the console as root or allow user namespaces, so that jobs are isolated; or deactivate "
            "the other accounts and unset CONSOLE_BIND; or set CONSOLE_TRUST_EVERYBODY=1 if all may read "
            "everything."
        )
        text = f"Jobs can read all that the console can, and {why}."
        problems.append(Error(text, hint=hint, id="console.E010"))
    if not several:
        return problems
    return [*problems, *_shared_network(found), *_shared_rights(found)]


def _shared_network(found: Collection[Exposure]) -> Iterator[CheckMessage]:
    """Yield what follows from jobs in this machine's network, where there is more than one person."""
    lacking = ", ".join(single.network_lacks())
    if Exposure.SIGN_INS in found:
        own = f"give each job a network of its own, which needs {lacking}; or " if lacking else ""
        hint = (
            "Set CONSOLE_TLS=auto, or CONSOLE_TLS=certificate.pem,key.pem, or put a TLS proxy in front and "
            f"set CONSOLE_TLS=proxy; or {own}deactivate the other accounts; or set CONSOLE_TRUST_EVERYBODY=1 "
            "if everybody may act as everybody."
        )
        text = "Without TLS, jobs can take over sign-ins, and there is more than one account."
        yield Error(text, hint=hint, id="console.E016")
    elif lacking and Exposure.FILES not in found:
        hint = (
            f"Install or allow {lacking}; or, if everybody may listen on any port of this machine, set "
            "network to host in the cluster's settings."
        )
        text = f"Jobs share this machine's network for want of {lacking}, and there is more than one account."
        yield Warning(text, hint=hint, id="console.W007")


def _shared_rights(found: Collection[Exposure]) -> list[CheckMessage]:
    """Yield what lets people's jobs reach each other's, where there is more than one person."""
    problems: list[CheckMessage] = []
    if Exposure.ACCOUNT in found:
        hint = (
            "Set identity to sudo or jwt in the settings of each Slurm cluster; or deactivate the other "
            "accounts; or set CONSOLE_TRUST_EVERYBODY=1 if everybody's jobs may read and end everybody's."
        )
        text = "On a Slurm cluster everybody's jobs run as one user, and there is more than one account."
        problems.append(Error(text, hint=hint, id="console.E017"))
    if Exposure.GROUPS in found:
        groups = ", ".join(identities.supplementary_groups())
        hint = (
            "Start the console as a user in no other groups, or as root; or deactivate the other accounts; "
            "or set CONSOLE_TRUST_EVERYBODY=1 if everybody may have these groups' rights."
        )
        text = f"Jobs keep the rights of the groups {groups}, and there is more than one account."
        problems.append(Error(text, hint=hint, id="console.E018"))
    return problems


@register("console")
def check_user_ids(*, databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Check that no account of the system has the user ids of jobs."""
    if not databases:
        return []
    try:
        ids = single.jobs_user_ids()
    except DatabaseError:
        return []
    taken = identities.taken_ids(ids)
    if not taken:
        return []
    hint = "Set another uid_base in the cluster's settings; files of earlier jobs keep the old ids."
    text = f"Jobs run under user ids {ids.start}-{ids.stop - 1}, which others have: {', '.join(taken[:5])}."
    return [Warning(text, hint=hint, id="console.W006")]


@register("console", deploy=True)
def check_broker_answers(**kwargs: Any) -> list[CheckMessage]:
    """A Redis that is away stops nothing, but delays everything."""
    limits = {"socket_timeout": BROKER_SECONDS, "socket_connect_timeout": BROKER_SECONDS}
    try:
        with redis.Redis.from_url(settings.REDIS_URL, **limits) as client:
            client.ping()
    except (OSError, redis.RedisError) as problem:
        return [Warning(f"Redis does not answer: {problem}", hint="Look at REDIS_URL.", id="console.W004")]
    return []


@register("console")
def check_signing_in(**kwargs: Any) -> list[CheckMessage]:
    """Directory and providers are what the settings say, and somebody can always get in."""
    hint = "docs/signing-in.md has examples."
    found: list[CheckMessage] = [Error(fault, hint=hint, id="console.E011") for fault in providers.faults()]
    if settings.CONSOLE_LDAP:
        try:
            ldapconfig.config()
        except ldapconfig.BadDirectory as bad:
            found.append(Error(str(bad), hint=hint, id="console.E012"))
        if not (find_spec("ldap") and find_spec("django_auth_ldap")):
            install = "`make ldap` installs it; docs/signing-in.md says what that takes."
            found.append(
                Error("CONSOLE_LDAP is set, but there is no LDAP library.", hint=install, id="console.E013")
            )
    local = settings.CONSOLE_LOCAL_SIGN_IN == "everybody"
    if not local and not settings.CONSOLE_LDAP and not settings.CONSOLE_OIDC:
        way = "Configure a provider or a directory, or unset CONSOLE_LOCAL_SIGN_IN."
        found.append(Error("Nobody could sign in but break-glass accounts.", hint=way, id="console.E014"))
    return found


@register("console")
def check_break_glass(*, databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Check that a break-glass account exists where passwords are not for everybody."""
    if not databases or settings.CONSOLE_LOCAL_SIGN_IN == "everybody":
        return []
    try:
        if any(user.has_usable_password() for user in User.objects.filter(break_glass=True, is_active=True)):
            return []
    except DatabaseError:  # no tables yet
        return []
    hint = "Give a superuser a password and tick “break-glass account” in the admin."
    return [Warning("There is no break-glass account.", hint=hint, id="console.W005")]


@register("console")
def check_uploads(**kwargs: Any) -> list[CheckMessage]:
    """The limits of uploaded code can all be reached."""
    file, tree, person = (
        settings.CONSOLE_CODE_FILE_MIB,
        settings.CONSOLE_CODE_MIB,
        settings.CONSOLE_CODE_PERSON_MIB,
    )
    if file <= tree <= person:
        return []
    hint = "Raise CONSOLE_CODE_MIB to at least CONSOLE_CODE_FILE_MIB, and CONSOLE_CODE_PERSON_MIB to both."
    return [Error("The limits of uploaded code exclude each other.", hint=hint, id="console.E015")]


def _open_to_others(path: Path) -> bool:
    return bool(stat.S_IMODE(path.stat().st_mode) & 0o077)


def _is_fernet_key(key: str) -> bool:
    try:
        Fernet(key)
    except ValueError:
        return False
    return True


def _is_loopback(address: str) -> bool:
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
