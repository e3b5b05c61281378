"""Addresses of channels: the fields of each kind's form, and the check of their values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs, urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from jobs.models import Channel
from jobs.outbound import addresses

Kind = Channel.Kind
ASKED: Final[Mapping[str, tuple[str, ...]]] = {
    Kind.EMAIL: ("to",),
    Kind.WEBHOOK: ("url",),
    Kind.SLACK: ("url",),
    Kind.DINGTALK: ("url", "secret"),
    Kind.FEISHU: ("url", "secret"),
    Kind.WECOM: ("url",),
    Kind.MATTERMOST: ("url",),
    Kind.DISCORD: ("url",),
    Kind.TEAMS: ("url",),
    Kind.TELEGRAM: ("token", "chat"),
}
"""The fields of each kind's form, in this order."""

OPTIONAL: Final = frozenset({"secret"})

_SERVICES: Final[Mapping[str, tuple[str, str]]] = {
    Kind.SLACK: (r"hooks\.slack(-gov)?\.com", r"/(services|workflows|triggers)/.+"),
    Kind.DINGTALK: (r"oapi\.dingtalk\.com", r"/robot/send"),
    Kind.FEISHU: (r"open\.(feishu\.cn|larksuite\.com)", r"/open-apis/bot/v2/hook/.+"),
    Kind.WECOM: (r"qyapi\.weixin\.qq\.com", r"/cgi-bin/webhook/send"),
    Kind.DISCORD: (r"discord(app)?\.com", r"/api/webhooks/[0-9]+/.+"),
    Kind.TEAMS: (r".+\.(logic\.azure\.com|api\.powerplatform\.com)", r"/.*workflows/.+"),
}
"""Host of a service, and the beginning of its webhooks' paths."""

SHOWN_HOSTS: Final[Mapping[str, str]] = {
    Kind.SLACK: "hooks.slack.com",
    Kind.DINGTALK: "oapi.dingtalk.com",
    Kind.FEISHU: "open.feishu.cn",
    Kind.WECOM: "qyapi.weixin.qq.com",
    Kind.DISCORD: "discord.com",
    Kind.TEAMS: "….logic.azure.com",
}

_QUERY: Final[Mapping[str, str]] = {Kind.DINGTALK: "access_token", Kind.WECOM: "key"}
"""The parameter that a service's address must have."""

_TOKEN: Final = re.compile(r"[0-9]{5,20}:[A-Za-z0-9_-]{20,100}")
_CHAT: Final = re.compile(r"-?[0-9]{1,20}|@[A-Za-z0-9_]{4,64}")


class Wrong(Exception):
    """A wrong value: the field, and a code of `jobs.messages.deliveries`."""

    def __init__(self, field: str, code: str, detail: str = "") -> None:
        super().__init__(field, code, detail)
        self.field = field
        self.code = code
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Entered:
    """An address as it is stored, and the part of it that pages show."""

    address: Mapping[str, str]
    shown: str


def read(kind: str, values: Mapping[str, str]) -> Entered:
    """Check the values for a channel of `kind`; nothing is resolved or contacted.  Raises Wrong."""
    given = {name: values.get(name, "").strip() for name in ASKED[kind]}
    given = {name: value for name, value in given.items() if value or name not in OPTIONAL}
    if kind == Kind.EMAIL:
        return _email(given["to"])
    if kind == Kind.TELEGRAM:
        return _telegram(given)
    return _url(kind, given)


def _email(to: str) -> Entered:
    try:
        validate_email(to if to.isascii() else "")
    except ValidationError as error:
        raise Wrong("to", "email") from error
    return Entered({"to": to}, to[:200])


def _telegram(given: Mapping[str, str]) -> Entered:
    if not _TOKEN.fullmatch(given["token"]):
        raise Wrong("token", "token")
    if not _CHAT.fullmatch(given["chat"]):
        raise Wrong("chat", "chat")
    return Entered(given, given["chat"])


def _url(kind: str, given: Mapping[str, str]) -> Entered:
    url = given["url"]
    try:
        target = addresses.check(url)
    except addresses.Refused as refused:
        raise Wrong("url", refused.code, refused.detail) from refused
    if kind in _SERVICES:
        host, path = _SERVICES[kind]
        if not re.fullmatch(host, target.host) or not re.match(path, target.path):
            raise Wrong("url", "other_host", SHOWN_HOSTS[kind])
    wanted = _QUERY.get(kind)
    if wanted and not parse_qs(urlsplit(url).query).get(wanted):
        raise Wrong("url", "other_host", SHOWN_HOSTS[kind])
    return Entered(given, f"{target.host} …{url[-4:]}"[:200])
