"""Validation of CONSOLE_LDAP without contacting the directory; needs no LDAP library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings

_ANY_GROUP: Final = (
    "(|(objectClass=groupOfNames)(objectClass=groupOfUniqueNames)(objectClass=posixGroup)(objectClass=group))"
)


class BadDirectory(ValueError):
    """CONSOLE_LDAP is invalid; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Config:
    """A directory.  `people` and `groups` are where to search; whom `people_filter` leaves out is disabled.

    `username`, `email`, `first_name`, `last_name`, `unix_name` and `id` are attributes; without a `unix_name`
    the directory does not say as which UNIX user somebody's jobs run.  `id` never changes and is given to
    nobody else: a user name may be.
    """

    url: str
    people: str
    password: str = ""
    starttls: bool = False
    ca: str = ""
    bind_dn: str = ""
    people_filter: str = "(objectClass=person)"
    username: str = "uid"
    email: str = "mail"
    first_name: str = "givenName"
    last_name: str = "sn"
    unix_name: str = ""
    id: str = "entryUUID"
    groups: str = ""
    group_filter: str = _ANY_GROUP
    group_name: str = "cn"


def config() -> Config:
    """As the settings have it.  Raises BadDirectory."""
    return read(settings.CONSOLE_LDAP, settings.CONSOLE_LDAP_PASSWORD)


def read(raw: Mapping[str, Any], password: str) -> Config:
    """Raises BadDirectory."""
    known = {field.name: field for field in fields(Config)}
    if unknown := set(raw) - set(known) | ({"password"} & set(raw)):
        raise BadDirectory(f"CONSOLE_LDAP says {', '.join(sorted(unknown))}, which means nothing there.")
    for key in ("url", "people"):
        if not raw.get(key):
            raise BadDirectory(f"CONSOLE_LDAP does not say the {key}.")
    for key, value in raw.items():
        if not isinstance(value, bool if key == "starttls" else str):
            raise BadDirectory(f"The {key} in CONSOLE_LDAP is of the wrong type.")
    found = Config(**raw, password=password)
    _judge(found)
    return found


def _judge(found: Config) -> None:
    parts = urlsplit(found.url)
    if parts.scheme not in {"ldap", "ldaps", "ldapi"}:
        raise BadDirectory("The url in CONSOLE_LDAP has to begin with ldaps://, ldap:// or ldapi://.")
    local = parts.scheme == "ldapi" or parts.hostname in {"localhost", "127.0.0.1", "::1"}
    if parts.scheme == "ldap" and not found.starttls and not local:
        raise BadDirectory("CONSOLE_LDAP would send passwords unencrypted: use ldaps:// or starttls.")
    if found.ca and not Path(found.ca).is_file():
        raise BadDirectory(f"The ca in CONSOLE_LDAP, {found.ca}, is no file.")
    for text in (found.people_filter, found.group_filter):
        if not (text.startswith("(") and text.endswith(")") and text.count("(") == text.count(")")):
            raise BadDirectory(f"{text} in CONSOLE_LDAP is no filter: (attribute=value).")
