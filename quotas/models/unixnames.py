"""The UNIX user as whom somebody's jobs run on clusters that tell people apart: set by an admin or by their
directory or provider, never by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from quotas.models import Cluster, User

log = structlog.get_logger(__name__)

LONGEST: Final = 32
_NAME: Final = re.compile(r"[a-z_][a-z0-9_.-]*")

NEVER: Final = frozenset({"root", "nobody", "slurm", "slurmrestd", "munge", "daemon", "bin", "sys"})
"""Nobody's jobs run as one of these, wherever that is looked at; whoever runs them knows more such users."""


SINGLE: Final = "single"
"""The setting `identity` of a cluster that says nothing: everything runs as the console's own user."""

BY_TOKENS: Final = "jwt"
"""What it is where the console makes a token for each user."""


def needs_unix_name(cluster: Cluster) -> bool:
    """Whether whoever submits there needs a UNIX name."""
    return identity(cluster.config) != SINGLE


def identity(settings: Mapping[str, Any]) -> str:
    """As whom jobs run on a cluster with these settings."""
    return str(settings.get("identity") or SINGLE)


def is_one(name: str) -> bool:
    """Whether it can be the name of a person's UNIX user."""
    return len(name) <= LONGEST and _NAME.fullmatch(name) is not None and name not in NEVER


def check(name: str) -> None:
    """As a validator of forms and files."""
    if not is_one(name):
        raise ValidationError(
            _(
                "%(name)s can't be used as a UNIX name. Use only a-z, 0-9 and _.-; system user names "
                "are not allowed."
            ),
            params={"name": name},
        )


def learn(user: User, source: str, name: str) -> None:
    """`source` says it, or that there is none.  What an admin wrote there by hand stays."""
    if user.unix_name and user.unix_name_from != source:
        return
    if name and not is_one(name):
        log.warning("unix_name_refused", person=user.get_username(), source=source, name=name[:LONGEST])
        name = ""
    if user.unix_name != name:
        user.unix_name, user.unix_name_from = name, source if name else ""
        user.save(update_fields=["unix_name", "unix_name_from"])
