"""Why something is not done with a channel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages.deliveries import delivery_message
from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say

_SENTENCES: Final[Mapping[str, tuple[str, ...]]] = {
    "too_many": (_("There are 20 channels already: remove one that is not needed."),),
    "too_many_rules": (_("There are 20 rules already: remove one that is not needed."),),
    "too_soon": (_("A test was sent just now: give it some seconds."),),
    "no_secret": (_("Only webhooks have a secret."),),
    "email": (_("Enter an e-mail address, such as name@example.org."),),
    "token": (_("A bot's token looks like 123456789:AAF…."),),
    "chat": (_("A chat is a number such as -1001234567890, or @name for a public channel."),),
}


def channel_message(code: str, detail: str = "") -> str:
    """The sentence for a refusal, or for an address that can't be right."""
    templates = _SENTENCES.get(code)
    return say(templates, {"detail": detail}) if templates else delivery_message(code, detail)
