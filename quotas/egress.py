"""Egress policies: where the jobs of a workspace may connect to, beside each other.

A policy is a list: () is nothing, (`internet`,) everything outside the cluster's machines, any other one the
rules `CIDR`, `CIDR:port` and `CIDR:first-last`.  Backends that give a job its own network enforce it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network, ip_address
from typing import Final

from django.core.exceptions import ValidationError
from django.db.models import TextChoices
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

INTERNET: Final = "internet"
MOST_RULES: Final = 64

_RULE: Final = re.compile(
    r"(?P<range>[0-9.]+(/[0-9]{1,2})?)(:(?P<first>[0-9]{1,5})(-(?P<last>[0-9]{1,5}))?)?"
)
_NEVER: Final = tuple(
    IPv4Network(each) for each in ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3")
)
"""This machine, link-local addresses such as a cloud's metadata service, multicast and what is reserved (RFC
6890): no job reaches them, whatever the policy."""


class EgressKind(TextChoices):
    """The three kinds of policies."""

    NONE = "none", gettext_lazy("No network")
    INTERNET = "internet", gettext_lazy("Internet")
    LISTED = "listed", gettext_lazy("Listed addresses only")


def internet() -> list[str]:
    """Return the policy of a new workspace."""
    return [INTERNET]


def kind_of(policy: Sequence[str]) -> EgressKind:
    """Return the kind of a policy."""
    if not policy:
        return EgressKind.NONE
    return EgressKind.INTERNET if list(policy) == internet() else EgressKind.LISTED


def describe(policy: Sequence[str]) -> str:
    """Return the policy in one line."""
    kind = kind_of(policy)
    return ", ".join(policy) if kind is EgressKind.LISTED else str(kind.label)


def parse_rules(texts: Iterable[str]) -> list[str]:
    """Return rules in their one spelling, each once.  Raises ValidationError with a message for each text."""
    rules: dict[str, None] = {}
    problems = []
    for text in texts:
        try:
            rules[_parse_rule(text.strip())] = None
        except ValueError as error:
            problems.append(f"{text.strip()}: {error}")
    if len(rules) > MOST_RULES:
        problems.append(_("At most %(most)s rules.") % {"most": MOST_RULES})
    if problems:
        raise ValidationError(problems)
    return list(rules)


def validate(policy: object) -> None:
    """Raise ValidationError for what is no policy."""
    if not isinstance(policy, list) or not all(isinstance(each, str) for each in policy):
        raise ValidationError(_("Must be a list of rules."))
    if policy != internet() and parse_rules(policy) != policy:
        raise ValidationError(_("Each rule must be written once, as in 192.0.2.0/24:443."))


def _parse_rule(text: str) -> str:
    """Return a rule in its one spelling.  Raises ValueError, with a message for whoever wrote it."""
    found = _RULE.fullmatch(text)
    if found is None:
        raise ValueError(_no_rule(text))
    destination = _parse_range(found["range"])
    if found["first"] is None:
        return str(destination)
    first, last = int(found["first"]), int(found["last"] or found["first"])
    if not 1 <= first <= last <= 65535:
        raise ValueError(_("Ports are 1 to 65535, the smaller one first."))
    return f"{destination}:{first}" + (f"-{last}" if last > first else "")


def _no_rule(text: str) -> str:
    host = text.rpartition(":")[0] or text
    if text.count(":") > 1:
        return _("IPv6 is not supported.") if _is_ipv6(text) else _("Enter one rule in each line.")
    if re.search(r"[A-Za-z]", host):
        return _("Names are not supported: enter IPv4 addresses.")
    return _("Enter an IPv4 range with or without ports, as in 192.0.2.0/24:443.")


def _is_ipv6(text: str) -> bool:
    address = text.partition("/")[0].partition("]")[0].removeprefix("[")
    try:
        return ip_address(address).version == 6
    except ValueError:
        return False


def _parse_range(text: str) -> IPv4Network:
    try:
        destination = IPv4Network(text, strict=False)
    except ValueError:
        raise ValueError(_("Enter an IPv4 range with or without ports, as in 192.0.2.0/24:443.")) from None
    if "/" in text and str(destination) != text:
        raise ValueError(_("Not the beginning of a range. Did you mean %(range)s?") % {"range": destination})
    if any(map(destination.subnet_of, _NEVER)):
        raise ValueError(_("Loopback, link-local and multicast addresses can't be reached."))
    return destination
