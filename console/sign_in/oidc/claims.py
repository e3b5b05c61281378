"""A provider's claims, reduced to what the console stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Final

_LONGEST: Final = 500
_LONGEST_UID: Final = 191  # the column's length in django-allauth
_MOST_GROUPS: Final = 2000


@dataclass(frozen=True, slots=True)
class Claims:
    """`groups` is None when the provider sent no claim about groups, which is not the same as: in none;
    `unix_name` where the provider is not to say it.
    """

    issuer: str
    subject: str
    sid: str
    username: str
    name: str
    email: str
    email_verified: bool
    groups: list[str] | None
    unix_name: str | None = None

    @property
    def uid(self) -> str:
        """By what an account is known again: the issuer and the subject."""
        return uid_of(self.issuer, self.subject)

    def to_json(self) -> dict[str, Any]:
        """As JSON, beside the account."""
        return asdict(self)


def uid_of(issuer: str, subject: str) -> str:
    """The same subject of another issuer is somebody else."""
    uid = f"{issuer} {subject}"
    return uid if len(uid) <= _LONGEST_UID else sha256(uid.encode()).hexdigest()


def read(
    claims: Mapping[str, Any], *, groups_claim: str, username_claim: str, unix_name_claim: str = ""
) -> Claims:
    """From verified claims."""
    return Claims(
        issuer=_text(claims.get("iss")),
        subject=_text(claims.get("sub")),
        sid=_text(claims.get("sid"))[:255],
        username=_text(claims.get(username_claim)),
        name=_text(claims.get("name")),
        email=_text(claims.get("email")),
        email_verified=claims.get("email_verified") in {True, "true"},
        groups=_groups(claims, groups_claim),
        unix_name=_text(claims.get(unix_name_claim)) if unix_name_claim else None,
    )


def _text(value: Any) -> str:
    return value[:_LONGEST] if isinstance(value, str) else ""


def _groups(claims: Mapping[str, Any], path: str) -> list[str] | None:
    """A list of texts, or one text; found by the claim's full name first, as some contain dots."""
    if not path:
        return None
    value: Any = claims.get(path)
    if value is None:
        value = claims
        for key in path.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        return None
    return [_text(each) for each in value[:_MOST_GROUPS] if _text(each)]
