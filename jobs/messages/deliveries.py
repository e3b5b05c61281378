"""Sentences about channels: refused commands, wrong addresses and failed deliveries, with what would help."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say

_SENTENCES: Final[Mapping[str, tuple[str, ...]]] = {
    "url": (_("This is no address that can be used; copy it again, whole."),),
    "scheme": (_("The address has to begin with https://."),),
    "http": (_("Only https:// is allowed: what is sent there is nobody else's business."),),
    "userinfo": (_("An address with a name and password in it is not used."),),
    "host": (_("The host of this address is neither a name nor an address in its usual form."),),
    "port": (
        _("Port %(detail)s is not one that messages may be sent to; admins can allow this host."),
        _("This port is not one that messages may be sent to; admins can allow this host."),
    ),
    "address": (
        _(
            "This leads to %(detail)s, which is inside this network: only admins can allow that "
            "(CONSOLE_EGRESS_HOSTS)."
        ),
        _("This leads into this network: only admins can allow that (CONSOLE_EGRESS_HOSTS)."),
    ),
    "other_host": (_("An address of %(detail)s was expected."), _("Another address was expected.")),
    "timeout": (_("No answer came in time."),),
    "resolve": (_("Nobody knows the name %(detail)s."), _("Nobody knows this name.")),
    "connect": (_("No connection: %(detail)s."), _("No connection.")),
    "tls": (
        _("The certificate or encryption of the other side can't be relied on: %(detail)s."),
        _("The certificate or encryption of the other side can't be relied on."),
    ),
    "broken": (_("The connection ended before there was an answer."),),
    "proxy": (_("The proxy did not connect: %(detail)s."), _("The proxy did not connect.")),
    "redirect": (_("The other side points elsewhere, which is not followed: use its final address."),),
    "busy": (_("The other side asks for a pause; it is tried again."),),
    "trouble": (_("The other side has trouble of its own: %(detail)s."), _("The other side has trouble.")),
    "rejected": (_("The other side refused it: %(detail)s."), _("The other side refused it.")),
    "no_mail": (_("This console has no e-mail: admins set CONSOLE_MAIL."),),
    "unreadable": (_("The key that its address was encrypted with is gone: enter the address again."),),
    "nothing_left": (_("There was nothing left that may be told here."),),
}


def delivery_message(code: str, detail: str = "") -> str:
    """Return the sentence for an error; a code of a later version is shown as it is."""
    templates = _SENTENCES.get(code)
    return say(templates, {"detail": detail.rstrip(".")}) if templates else code


_COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "too_many": (_("There are 20 channels already: remove one that is not needed."),),
    "too_many_rules": (_("There are 20 rules already: remove one that is not needed."),),
    "too_soon": (_("A test was sent just now: give it some seconds."),),
    "no_secret": (_("Only webhooks have a secret."),),
    "email": (_("Enter an e-mail address, such as name@example.org."),),
    "token": (_("A bot's token looks like 123456789:AAF…."),),
    "chat": (_("A chat is a number such as -1001234567890, or @name for a public channel."),),
}


def channel_message(code: str, detail: str = "") -> str:
    """Return the sentence for a refusal, or for a wrong address."""
    templates = _COMMANDS.get(code)
    return say(templates, {"detail": detail}) if templates else delivery_message(code, detail)
