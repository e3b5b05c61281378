"""How a message gets to each kind of channel.  What comes back says whether to try again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from jobs.models import Channel
from jobs.notifications.carriers import chats, mail, webhook
from jobs.notifications.carriers.outcome import Outcome
from jobs.notifications.message import Message
from jobs.outbound import egress

Carry = Callable[[Mapping[str, str], Message], Outcome]


CARRIERS: Final[Mapping[str, Carry]] = {
    Channel.Kind.EMAIL: mail.carry,
    Channel.Kind.WEBHOOK: webhook.carry,
    Channel.Kind.SLACK: chats.SLACK.carry,
    Channel.Kind.MATTERMOST: chats.MATTERMOST.carry,
    Channel.Kind.DINGTALK: chats.DINGTALK.carry,
    Channel.Kind.FEISHU: chats.FEISHU.carry,
    Channel.Kind.WECOM: chats.WECOM.carry,
    Channel.Kind.DISCORD: chats.DISCORD.carry,
    Channel.Kind.TEAMS: chats.TEAMS.carry,
    Channel.Kind.TELEGRAM: chats.TELEGRAM.carry,
}


def carry(kind: str, address: Mapping[str, str], message: Message) -> Outcome:
    """Send the message there.  Never raises for what the other side or the address does."""
    try:
        return CARRIERS[kind](address, message)
    except egress.Refused as refused:
        return Outcome(error=refused.code, detail=refused.detail)
    except egress.Failed as failed:
        return Outcome(error=failed.code, detail=failed.detail, again=True)
