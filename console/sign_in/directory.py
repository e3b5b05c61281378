"""People and groups of an LDAP directory.  Imported only where there is one: it needs the extra `ldap`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NoReturn

import ldap
import structlog
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest
from django_auth_ldap.backend import LDAPBackend, ldap_error
from django_auth_ldap.config import LDAPSearch, LDAPSettings
from ldap.controls import SimplePagedResultsControl
from ldap.filter import escape_filter_chars

from console.sign_in.backends import DirectoryAway, LocalBackend
from console.sign_in.ldapconfig import Config, config
from jobs.live import heartbeats
from quotas import audit
from quotas.accounts import activation, groups
from quotas.models import Action, User, unixnames

log = structlog.get_logger(__name__)

SOURCE: Final = "ldap"
PART: Final = "directory"
AWAY: Final = "no answer"
_SECONDS: Final = 10
_PAGE: Final = 500
_AT_ONCE: Final = 100


class Unlikely(Exception):
    """The directory shows nobody at all: it is asked wrongly rather than empty."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A person in the directory; groups named in the entry are distinguished names."""

    dn: str
    username: str
    member_of: tuple[str, ...]
    gid: str
    unix_name: str
    id: str


def options(directory: Config) -> dict[int, Any]:
    """Certificates are checked, and nothing takes for ever."""
    found = {
        ldap.OPT_NETWORK_TIMEOUT: _SECONDS,
        ldap.OPT_TIMEOUT: _SECONDS,
        ldap.OPT_REFERRALS: 0,
        ldap.OPT_PROTOCOL_VERSION: 3,
        ldap.OPT_X_TLS_REQUIRE_CERT: ldap.OPT_X_TLS_DEMAND,
    }
    if directory.ca:
        found[ldap.OPT_X_TLS_CACERTFILE] = directory.ca
    found[ldap.OPT_X_TLS_NEWCTX] = 0  # the last one: it takes the others into account
    return found


class Directory(LDAPBackend):  # type: ignore[misc]  # it is published without types
    """Signing in with the directory's passwords.

    An account is the directory's when it came from there (`User.directory_dn`), or when an admin wrote that
    into it: somebody there who is called like somebody here does not become them.
    """

    @property
    def settings(self) -> LDAPSettings:
        """From CONSOLE_LDAP."""
        directory = config()
        search = f"(&{directory.people_filter}({directory.username}=%(user)s))"
        wanted = ["*", directory.id]  # which is an operational attribute, sent to whoever names it
        attributes = {
            "email": directory.email,
            "first_name": directory.first_name,
            "last_name": directory.last_name,
        }
        return LDAPSettings(
            "_CONSOLE_LDAP_",
            {
                "SERVER_URI": directory.url,
                "START_TLS": directory.starttls,
                "CONNECTION_OPTIONS": options(directory),
                "BIND_DN": directory.bind_dn,
                "BIND_PASSWORD": directory.password,
                "USER_SEARCH": LDAPSearch(directory.people, ldap.SCOPE_SUBTREE, search, wanted),
                "USER_ATTR_MAP": {field: name for field, name in attributes.items() if name},
            },
        )

    def get_user(self, user_id: int) -> User | None:
        user = User.objects.filter(pk=user_id).first()
        return user if LocalBackend().user_can_authenticate(user) else None

    def get_or_build_user(self, username: str, ldap_user: Any) -> tuple[User, bool]:
        identity = _identity((ldap_user.attrs or {}).get(config().id) or ())
        known = User.objects.exclude(directory_id="").filter(directory_id=identity).first()
        user = known or User.objects.filter(directory_dn__iexact=ldap_user.dn).first()
        user = user or User.objects.filter(username__iexact=username).first()
        if user is None:
            return User(username=username.lower(), directory_dn=ldap_user.dn, directory_id=identity), True
        if not user.directory_dn:
            self._refuse(user, ldap_user, "an account of the console has that name")
        if user.directory_id and identity and user.directory_id != identity:
            self._refuse(user, ldap_user, "somebody else in the directory had that name before")
        user.directory_dn, user.directory_id = ldap_user.dn, identity or user.directory_id
        return user, False

    def _refuse(self, user: User, ldap_user: Any, why: str) -> NoReturn:
        audit.log_refusal(user.get_username(), action=Action.SIGN_IN_FAILED, thing=user, details={"why": why})
        raise ldap_user.AuthenticationFailed(why)

    def authenticate_ldap_user(self, ldap_user: Any, password: str) -> AbstractBaseUser | None:
        user: User | None = super().authenticate_ldap_user(ldap_user, password)
        if user is None:
            return None
        try:
            _update([user])
        except (ldap.LDAPError, Unlikely) as problem:
            log.warning("directory_away", problem=type(problem).__name__)
        user.refresh_from_db()
        return user

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **more: Any,
    ) -> AbstractBaseUser | None:
        try:
            found: AbstractBaseUser | None = super().authenticate(request, username, password, **more)
        except DirectoryAway:
            heartbeats.set_trouble(PART, AWAY)
            user = User.objects.filter(username__iexact=username or "").first()
            if user is not None and (user.has_usable_password() or not user.directory_dn):
                return None  # a password of the console's own was wrong
            raise
        if found is not None:
            heartbeats.clear_trouble(PART)
        return found


def _stop(sender: Any, context: str, exception: Exception, **more: Any) -> None:
    """The library would go on as if the password had been wrong."""
    if context in {"authenticate", "search_for_user_dn"}:
        log.warning("directory_away", problem=type(exception).__name__)
        raise DirectoryAway from exception


ldap_error.connect(_stop, dispatch_uid="console.sign_in.directory")


# --- Asking again -----------------------------------------------------------------------------------------


def update_all() -> None:
    """Ask about everybody who came from there: who is gone is disabled, groups are what they are now."""
    try:
        _update(User.objects.exclude(directory_dn="").order_by("pk").iterator())
    except (ldap.LDAPError, Unlikely):
        heartbeats.set_trouble(PART, AWAY)
        raise
    heartbeats.clear_trouble(PART)


def _update(users: Iterable[User]) -> None:
    directory = config()
    with _connection(directory) as connection:
        first = _search(connection, directory.people, directory.people_filter, [directory.username], most=1)
        if not first:
            raise Unlikely
        by_member = _groups(connection, directory)
        waiting = iter(users)
        while some := list(islice(waiting, _AT_ONCE)):
            entries = _people(connection, directory, some)
            for user in some:
                _apply(user, entries.get(user.username.lower()), by_member, named=bool(directory.unix_name))


def _apply(user: User, entry: Entry | None, by_member: Mapping[str, set[str]], *, named: bool) -> None:
    if named:
        unixnames.learn(user, SOURCE, entry.unix_name if entry else "")
    if entry is not None and user.directory_id and entry.id and entry.id != user.directory_id:
        entry = None  # the name is somebody else's now
    if entry is None:
        activation.disable(user, SOURCE)
        groups.learn(user, SOURCE, [])
        return
    activation.enable(user, SOURCE)
    keys = (entry.dn.lower(), entry.username.lower(), f"gid {entry.gid}")
    found = {name for key in keys for name in by_member.get(key, ())} | set(entry.member_of)
    groups.learn(user, SOURCE, found)


def find_trouble() -> str:
    """Sign in to the directory as CONSOLE_LDAP says; return why that fails, "" if it does not."""
    try:
        with _connection(config()):
            return ""
    except ldap.LDAPError as error:
        return str(error)


@contextmanager
def _connection(directory: Config) -> Iterator[Any]:
    connection = ldap.initialize(directory.url)
    try:
        for option, value in options(directory).items():
            connection.set_option(option, value)
        if directory.starttls:
            connection.start_tls_s()
        connection.simple_bind_s(directory.bind_dn, directory.password)
        yield connection
    finally:
        connection.unbind_s()


def _people(connection: Any, directory: Config, users: Sequence[User]) -> dict[str, Entry]:
    """By user name, those of `users` that are there."""
    names = "".join(f"({directory.username}={escape_filter_chars(user.username)})" for user in users)
    wanted = [directory.username, "memberOf", "gidNumber", directory.id, *filter(None, [directory.unix_name])]
    found = {}
    for dn, attributes in _search(
        connection, directory.people, f"(&{directory.people_filter}(|{names}))", wanted
    ):
        username = _first(attributes, directory.username)
        member_of = tuple(_texts(attributes, "memberOf"))
        gid, unix_name = _first(attributes, "gidNumber"), _first(attributes, directory.unix_name)
        identity = _identity(attributes.get(directory.id.lower(), ()))
        found[username.lower()] = Entry(dn, username, member_of, gid, unix_name, identity)
    return found


def _groups(connection: Any, directory: Config) -> Mapping[str, set[str]]:
    """By member (a distinguished name, a user name, a primary group), the names of groups: both of each."""
    found: dict[str, set[str]] = defaultdict(set)
    if not directory.groups:
        return found
    wanted = [directory.group_name, "member", "uniqueMember", "memberUid", "gidNumber"]
    for dn, attributes in _search(connection, directory.groups, directory.group_filter, wanted):
        names = {dn, *_texts(attributes, directory.group_name)}
        members = [*_texts(attributes, "member"), *_texts(attributes, "uniqueMember")]
        members += _texts(attributes, "memberUid")
        members += [f"gid {gid}" for gid in _texts(attributes, "gidNumber")]
        for member in members:
            found[member.lower()] |= names
    return found


def _search(
    connection: Any, base: str, wanted: str, attributes: list[str], most: int = 0
) -> list[tuple[str, dict[str, list[bytes]]]]:
    """Page by page: directories give out only so many at a time."""
    found: list[tuple[str, dict[str, list[bytes]]]] = []
    control = SimplePagedResultsControl(criticality=False, size=most or _PAGE, cookie="")
    while True:
        number = connection.search_ext(
            base, ldap.SCOPE_SUBTREE, wanted, attributes, serverctrls=[control], timeout=_SECONDS
        )
        _kind, rows, _id, controls = connection.result3(number, timeout=_SECONDS)
        found += [(dn, _lower(row)) for dn, row in rows if dn]
        cookies = [each.cookie for each in controls if each.controlType == control.controlType]
        if not cookies or not cookies[0] or most:
            return found
        control.cookie = cookies[0]


def _lower(row: dict[str, list[bytes]]) -> dict[str, list[bytes]]:
    """Attributes are called as the server likes."""
    return {name.lower(): values for name, values in row.items()}


def _identity(values: Iterable[str | bytes]) -> str:
    """The entry's own, immutable id as text: Active Directory's is bytes that are none."""
    value = next(iter(values), "")
    if isinstance(value, str):
        return value
    try:
        return value.decode("ascii")
    except UnicodeDecodeError:
        return value.hex()


def _texts(attributes: Mapping[str, list[bytes]], name: str) -> list[str]:
    return [value.decode(errors="replace") for value in attributes.get(name.lower(), ())]


def _first(attributes: Mapping[str, list[bytes]], name: str) -> str:
    return next(iter(_texts(attributes, name)), "")
