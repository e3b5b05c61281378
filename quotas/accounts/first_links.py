"""Links by which new people set their first password: by e-mail, or shown once to whoever added them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from allauth.account.adapter import get_adapter
from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext_lazy

from quotas.accounts import resets
from quotas.models import User


class Delivery(StrEnum):
    """How a new person gets the link; by LDAP or a provider they need none."""

    MAIL = "mail"
    SHOW = "show"
    NONE = "none"


LABELS: Final = (
    (Delivery.MAIL, gettext_lazy("E-mail a link")),
    (Delivery.SHOW, gettext_lazy("Show a link here")),
    (Delivery.NONE, gettext_lazy("None: LDAP or single sign-on")),
)


def list_deliveries() -> list[tuple[Delivery, str]]:
    """Return the ways that are possible here, with labels; the first is the usual one."""
    return [(way, str(label)) for way, label in LABELS if way is not Delivery.MAIL or settings.CONSOLE_MAIL]


def parse_delivery(text: str) -> Delivery:
    """Return the way of that name, or none where it is not possible here."""
    return next((way for way, _label in list_deliveries() if way == text), Delivery.NONE)


def deliver(people: Iterable[User], way: Delivery) -> list[tuple[User, str]]:
    """Mail each person a link; return those that were not mailed, to be shown once.

    A link works once and for three days.  Whoever has no e-mail address gets none.
    """
    shown = []
    for person in people if way is not Delivery.NONE else ():
        link = f"{settings.CONSOLE_URL}{resets.path_for(person)}"
        if way is Delivery.MAIL and person.email:
            with translation.override(person.language or settings.LANGUAGE_CODE):
                values = {"person": person, "link": link}
                get_adapter().send_mail("console/email/first_link", person.email, values)
        else:
            shown.append((person, link))
    return shown
