"""The origin of an action: the person, the channel and the address.

It travels in a context variable, which threads and tasks that serve one request share and no others see.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest

from quotas.models import AccessKey, AccessToken, User, Way


@dataclass(slots=True)
class Origin:
    """A request's person is looked up when it matters: the API learns late who that is.

    `name` stands for whoever is no person: a command, the system.  `refusal_logged`: a refusal of this
    request is in the audit log already.
    """

    way: Way = Way.SYSTEM
    name: str = "system"
    address: str = ""
    user: User | None = None
    request: HttpRequest | None = None
    refusal_logged: bool = False

    @property
    def person(self) -> User | None:
        """The account that acts, if one does."""
        user = self.user or getattr(self.request, "user", None)
        return user if isinstance(user, User) else None

    @property
    def token(self) -> str:
        """The prefix of the token, or the id of the access key, by which they came."""
        token = getattr(self.request, "auth", None)
        if isinstance(token, AccessKey):
            return token.key_id
        return token.prefix if isinstance(token, AccessToken) else ""


SYSTEM: Final = Origin()

_current: ContextVar[Origin] = ContextVar("origin", default=SYSTEM)


def current() -> Origin:
    """Return the origin of what is being done."""
    return _current.get()


@contextmanager
def of(origin: Origin) -> Iterator[Origin]:
    """Everything inside comes from there."""
    before = _current.set(origin)
    try:
        yield origin
    finally:
        _current.reset(before)


def begin_command(name: str) -> None:
    """From here on this process is `manage.py NAME`."""
    _current.set(Origin(Way.COMMAND, name=f"system: manage.py {name}"))
