"""The base of incident buttons: a form, a preview of effects, and the action."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from jobs.admin.admin_actions import Presence
from quotas.admin.bulk import AdminForm
from quotas.audit.action_record import Actor


class NotDone(Exception):
    """The action was not possible; the message says why, in the reader's language."""


class Incident(ABC):
    """One button: a form, what would follow, and the deed."""

    name: str
    title: Any
    button: Any
    form: type[AdminForm]
    danger = False

    def possible(self) -> bool:
        """Whether there is anything to do it to."""
        return True

    @abstractmethod
    def effects(self, values: Mapping[str, Any]) -> list[str]:
        """Return the effects of an action, in sentences."""

    @abstractmethod
    def do(self, actor: Actor, values: Mapping[str, Any]) -> str:
        """Do it; return what to tell.  Raises NotDone."""


def presence_effects(found: Presence) -> list[str]:
    """Return what ends of a person, in sentences."""
    names = {
        "jobs": _("Jobs stopped: %(count)s"),
        "sessions": _("Sign-ins ended: %(count)s"),
        "tokens": _("Access tokens revoked: %(count)s"),
        "service_tokens": _(
            "Service account tokens created by this user revoked: %(count)s. Scripts that use them "
            "need new tokens."
        ),
        "access_keys": _("Access keys revoked: %(count)s"),
        "service_keys": _(
            "Service account access keys created by this user revoked: %(count)s. Scripts that use them "
            "need new keys."
        ),
        "invitations": _("Invitations withdrawn: %(count)s"),
        "ssh_keys": _("SSH keys removed: %(count)s"),
        "entries": _("SSH connections and terminals ended: %(count)s"),
        "visits": _("Endpoint sessions closed: %(count)s"),
    }
    return [text % {"count": getattr(found, name)} for name, text in names.items()]
