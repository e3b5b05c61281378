"""The OIDC providers that the settings name, read once and judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.text import slugify

from console.sign_in.oidc import claims
from console.sign_in.oidc.claims import Claims

_SCOPES: Final = ["openid", "profile", "email"]
_TEXTS: Final = frozenset(
    {"label", "issuer", "client_id", "groups_claim", "username_claim", "unix_name_claim"}
)
_FLAGS: Final = frozenset({"sign_up", "second_factor"})
_RESERVED: Final = frozenset({"ldap", "password", "passkey", "break-glass"})
LABEL_LENGTH: Final = 40


class BadProvider(ValueError):
    """A provider of CONSOLE_OIDC is invalid; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Provider:
    """An OIDC provider.

    `sign_up`: whoever has an account there gets one here.  `second_factor`: whoever comes from there has
    shown one, and is not asked for another.  `groups_claim` may be dotted: `realm_access.roles`.
    `unix_name_claim` says as which UNIX user somebody's jobs run; without it the provider does not.
    """

    name: str
    label: str
    issuer: str
    client_id: str
    secret: str
    scopes: list[str]
    groups_claim: str
    username_claim: str
    unix_name_claim: str
    sign_up: bool
    second_factor: bool

    @property
    def lasting(self) -> bool:
        """Whether a refused refresh token means that the account or its consent is gone, not just a visit."""
        return "offline_access" in self.scopes

    def read_claims(self, data: Mapping[str, Any]) -> Claims:
        """Return the identity in verified claims."""
        return claims.read(
            data,
            groups_claim=self.groups_claim,
            username_claim=self.username_claim,
            unix_name_claim=self.unix_name_claim,
        )


def read(name: str, raw: Any, secret: str) -> Provider:
    """Raises BadProvider."""
    if slugify(name) != name or name in _RESERVED or len(name) > LABEL_LENGTH:
        raise BadProvider(f"“{name}” cannot be the name of a provider: a-z, 0-9 and - can.")
    if not isinstance(raw, Mapping):
        raise BadProvider(f"What it says of {name} is not a JSON object.")
    if unknown := set(raw) - _TEXTS - _FLAGS - {"scopes"}:
        raise BadProvider(f"It says {', '.join(sorted(unknown))} of {name}, which means nothing.")
    for key in ("issuer", "client_id"):
        if not raw.get(key):
            raise BadProvider(f"It does not say the {key} of {name}.")
    for key, kind in [*((key, str) for key in _TEXTS), *((key, bool) for key in _FLAGS), ("scopes", list)]:
        if key in raw and not isinstance(raw[key], kind):
            raise BadProvider(f"The {key} of {name} is of the wrong type.")
    if not _is_safe(raw["issuer"]):
        raise BadProvider(f"The issuer of {name} has to be an https address.")
    return Provider(
        name=name,
        label=raw.get("label", name)[:LABEL_LENGTH],
        issuer=raw["issuer"],
        client_id=raw["client_id"],
        secret=secret,
        scopes=[str(scope) for scope in raw.get("scopes", _SCOPES)],
        groups_claim=raw.get("groups_claim", "groups"),
        username_claim=raw.get("username_claim", "preferred_username"),
        unix_name_claim=raw.get("unix_name_claim", ""),
        sign_up=raw.get("sign_up", True),
        second_factor=raw.get("second_factor", False),
    )


def _is_safe(issuer: str) -> bool:
    """Tokens cross the network: only to this machine itself may they do so unencrypted."""
    parts = urlsplit(issuer)
    if parts.scheme == "https":
        return bool(parts.hostname)
    return parts.scheme == "http" and parts.hostname in {"localhost", "127.0.0.1", "::1"}


def list_providers() -> Iterator[Provider]:
    """Return the valid providers; invalid ones are reported by system checks."""
    for name, raw in settings.CONSOLE_OIDC.items():
        try:
            yield read(name, raw, settings.CONSOLE_OIDC_SECRETS.get(name, ""))
        except BadProvider:
            continue


def faults() -> Iterator[str]:
    """Return the problems of the providers, a sentence each."""
    for name, raw in settings.CONSOLE_OIDC.items():
        try:
            read(name, raw, "")
        except BadProvider as bad:
            yield str(bad)
    for name in settings.CONSOLE_OIDC_SECRETS.keys() - settings.CONSOLE_OIDC.keys():
        yield f"CONSOLE_OIDC_SECRETS has a secret of {name}, of which CONSOLE_OIDC says nothing."


def find(name: str) -> Provider | None:
    """The provider of that name, if it is configured."""
    return next((each for each in list_providers() if each.name == name), None)
