"""The base of incident buttons: a form, a preview of effects, and the action."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

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
