"""How a message gets to each kind of channel.  What comes back says whether to try again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from jobs import egress
from jobs.models import Channel
from jobs.notices.carriers import chats, mail, webhook
from jobs.notices.carriers.outcome import Outcome
from jobs.notices.message import Message

Carry = Callable[[Mapping[str, str], Message], Outcome]


def _further(name: str, address: Mapping[str, str], message: Message) -> Outcome:
    """One of those that need apprise, which is loaded only where somebody uses it."""
    from jobs.notices.carriers import further  # noqa: PLC0415  # see above

    found: Carry = getattr(further, name)
    return found(address, message)


CARRIERS: Final[Mapping[str, Carry]] = {
    Channel.Kind.EMAIL: mail.carry,
    Channel.Kind.WEBHOOK: webhook.carry,
    Channel.Kind.SLACK: chats.SLACK.carry,
    Channel.Kind.MATTERMOST: chats.MATTERMOST.carry,
    Channel.Kind.DINGTALK: chats.DINGTALK.carry,
    Channel.Kind.FEISHU: chats.FEISHU.carry,
    Channel.Kind.WECOM: chats.WECOM.carry,
    Channel.Kind.DISCORD: partial(_further, "discord"),
    Channel.Kind.TEAMS: partial(_further, "teams"),
    Channel.Kind.TELEGRAM: partial(_further, "telegram"),
}


def carry(kind: str, address: Mapping[str, str], message: Message) -> Outcome:
    """Send the message there.  Never raises for what the other side or the address does."""
    try:
        return CARRIERS[kind](address, message)
    except egress.Refused as refused:
        return Outcome(error=refused.code, detail=refused.detail)
    except egress.Failed as failed:
        return Outcome(error=failed.code, detail=failed.detail, again=True)
