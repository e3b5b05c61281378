"""Sentences about channels: refused commands, wrong addresses and failed deliveries, with what would help."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say

_SENTENCES: Final[Mapping[str, tuple[str, ...]]] = {
    "url": (_("Invalid address. Copy the full address again."),),
    "scheme": (_("The address must start with https://."),),
    "http": (_("Only https:// is allowed, to keep messages private."),),
    "userinfo": (_("Addresses with a user name or password are not allowed."),),
    "host": (_("Invalid host name or IP address."),),
    "port": (
        _("Port %(detail)s is not allowed. An admin can allow this host."),
        _("This port is not allowed. An admin can allow this host."),
    ),
    "address": (
        _(
            "The address resolves to %(detail)s on the internal network. Only admins can allow "
            "internal addresses (CONSOLE_EGRESS_HOSTS)."
        ),
        _(
            "The address is on the internal network. Only admins can allow internal addresses "
            "(CONSOLE_EGRESS_HOSTS)."
        ),
    ),
    "other_host": (_("Expected an address on %(detail)s."), _("Wrong kind of address for this channel.")),
    "timeout": (_("No response in time."),),
    "resolve": (_("Host %(detail)s not found."), _("Host not found.")),
    "connect": (_("Connection failed: %(detail)s."), _("Connection failed.")),
    "tls": (
        _("TLS error: %(detail)s."),
        _("TLS error: the server's certificate or encryption is not trusted."),
    ),
    "broken": (_("The connection closed before a response arrived."),),
    "proxy": (_("Proxy connection failed: %(detail)s."), _("Proxy connection failed.")),
    "redirect": (
        _("The server redirects to another address. Redirects are not followed; enter the final address."),
    ),
    "busy": (_("Rate limited by the server. Will retry."),),
    "trouble": (_("Server error: %(detail)s."), _("Server error.")),
    "rejected": (_("Rejected by the server: %(detail)s."), _("Rejected by the server.")),
    "no_mail": (_("E-mail is not configured. An admin must set CONSOLE_MAIL."),),
    "unreadable": (_("The encryption key of the saved address is missing. Enter the address again."),),
    "credential": (_("The encryption key of the saved password or token is missing. Enter it again."),),
    "answer": (_("Unexpected response. Check the address and the format."),),
    "nothing_left": (_("No content allowed for this channel."),),
}


def delivery_message(code: str, detail: str = "") -> str:
    """Return the sentence for an error; a code of a later version is shown as it is."""
    templates = _SENTENCES.get(code)
    return say(templates, {"detail": detail.rstrip(".")}) if templates else code


_COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "too_many": (_("Limit of 20 channels reached. Remove one first."),),
    "too_many_rules": (_("Limit of 20 rules reached. Remove one first."),),
    "too_soon": (_("A test was just sent. Try again in a few seconds."),),
    "no_secret": (_("Only webhooks can have a secret."),),
    "email": (_("Enter an e-mail address, such as name@example.org."),),
    "token": (_("Enter a bot token such as 123456789:AAF…."),),
    "chat": (_("Enter a chat ID such as -1001234567890, or @name for a public channel."),),
}


def channel_message(code: str, detail: str = "") -> str:
    """Return the sentence for a refusal, or for a wrong address."""
    templates = _COMMANDS.get(code)
    return say(templates, {"detail": detail}) if templates else delivery_message(code, detail)
