"""Transports of messages, one for each kind of channel; the outcome says whether to try again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from jobs.models import Channel
from jobs.notifications.message import Message
from jobs.notifications.transports import chats, mail, webhook
from jobs.notifications.transports.outcome import Outcome
from jobs.outbound.addresses import AddressError
from jobs.outbound.egress import Failed

Transport = Callable[[Mapping[str, str], Message], Outcome]


TRANSPORTS: Final[Mapping[str, Transport]] = {
    Channel.Kind.EMAIL: mail.send,
    Channel.Kind.WEBHOOK: webhook.send,
    Channel.Kind.SLACK: chats.SLACK.send,
    Channel.Kind.MATTERMOST: chats.MATTERMOST.send,
    Channel.Kind.DINGTALK: chats.DINGTALK.send,
    Channel.Kind.FEISHU: chats.FEISHU.send,
    Channel.Kind.WECOM: chats.WECOM.send,
    Channel.Kind.DISCORD: chats.DISCORD.send,
    Channel.Kind.TEAMS: chats.TEAMS.send,
    Channel.Kind.TELEGRAM: chats.TELEGRAM.send,
}


def send(kind: str, address: Mapping[str, str], message: Message) -> Outcome:
    """Send the message to an address of that kind.  Never raises for errors of the address or its server."""
    try:
        return TRANSPORTS[kind](address, message)
    except AddressError as error:
        return Outcome(error=error.code, detail=error.detail, again=isinstance(error, Failed))
