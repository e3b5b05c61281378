"""Single-person mode: the console admits one active person, because jobs could act as everybody who signs in.

Which exposures hold is found out at the start (`console.configuration.single`) and noted in a file for the
processes that serve pages.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.utils.translation import gettext as _

if TYPE_CHECKING:
    from quotas.models import User

NOTE: Final = "run/single-person"
"""Exists, beneath CONSOLE_HOME, while there is an exposure; holds one on each line."""


class Exposure(StrEnum):
    """A way in which jobs can harm whoever uses the console."""

    FILES = "files"
    """Jobs are processes of the console's user: they read and change all that the console can."""

    SIGN_INS = "sign-ins"
    """Jobs listen under the console's host name, and its cookies are sent there, as they have no TLS."""

    ACCOUNT = "account"
    """Jobs on a Slurm cluster run as one user: they read and end each other's, and the console's own files
    wherever a node has them."""

    GROUPS = "groups"
    """Jobs keep the rights of the groups that the console's user is in."""


class OnePersonOnly(PermissionDenied):
    """A second active person is refused; the message is a sentence for whoever tries."""


def note(found: frozenset[Exposure]) -> None:
    """Record the exposures for `read_note`; called at every start."""
    path = settings.CONSOLE_HOME / NOTE
    if found:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text("".join(f"{each}\n" for each in sorted(found)), encoding="ascii")
    else:
        path.unlink(missing_ok=True)
    read_note.cache_clear()


@cache
def read_note(home: Path) -> frozenset[Exposure]:
    """Return what the last start recorded; read once in a process."""
    try:
        lines = (home / NOTE).read_text(encoding="ascii").split()
    except FileNotFoundError:
        return frozenset()
    return frozenset(Exposure(line) for line in lines)


def holds() -> bool:
    """Return whether a second active person is refused."""
    return bool(read_note(settings.CONSOLE_HOME)) and not settings.CONSOLE_TRUST_EVERYBODY


def check(user: User) -> None:
    """Raise OnePersonOnly if saving `user` would make a second active person."""
    if not holds() or not user.is_active or user.kind != user.Kind.PERSON:
        return
    active = type(user).objects.filter(is_active=True, kind=user.Kind.PERSON)
    if not active.filter(pk=user.pk).exists() and active.exists():
        raise OnePersonOnly(sentence())


def sentence() -> str:
    """Return why only one person may be active, and what to do."""
    if Exposure.FILES in read_note(settings.CONSOLE_HOME):
        return _(
            "Only one user can be active: jobs on this machine are not isolated. Start the console "
            "as root or allow user namespaces, or set CONSOLE_TRUST_EVERYBODY=1."
        )
    if Exposure.ACCOUNT in read_note(settings.CONSOLE_HOME):
        return _(
            "Only one user can be active: on a Slurm cluster all jobs run as one user. Set "
            "identity to sudo or jwt in the cluster's settings, or set CONSOLE_TRUST_EVERYBODY=1."
        )
    if Exposure.GROUPS in read_note(settings.CONSOLE_HOME):
        return _(
            "Only one user can be active: jobs keep the rights of the groups of the console's user. Start "
            "the console as a user in no other groups, or as root, or set CONSOLE_TRUST_EVERYBODY=1."
        )
    return _(
        "Only one user can be active without TLS: a job on this machine could take over other people's "
        "sign-ins. Set CONSOLE_TLS=auto, or a certificate, or CONSOLE_TRUST_EVERYBODY=1."
    )
