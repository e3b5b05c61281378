"""Chat services: Slack, Mattermost, Discord, Teams, Telegram, DingTalk, Feishu and WeCom.

Each takes a body of its own. The last three answer 200 to what they refuse and say so in the answer's body,
and DingTalk and Feishu ask for a signature.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote_plus

from django.utils import timezone

from jobs.notifications.message import Message, MessageLine, more, plain, truncate
from jobs.notifications.transports.outcome import Outcome, of_answer
from jobs.outbound import egress

Address = Mapping[str, str]
MOST_LINES: Final = 20


@dataclass(frozen=True, slots=True)
class Wire:
    """One request as the service wants it."""

    url: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Chat:
    """One service.  `refusal` reads the answer's body: None when it was taken, else the outcome."""

    wire: Callable[[Address, Message, float], Wire]
    refusal: Callable[[egress.Answer], Outcome | None] = lambda _answer: None

    def send(self, address: Address, message: Message) -> Outcome:
        """Send it, and read the answer."""
        wire = self.wire(address, message, timezone.now().timestamp())
        headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "Job-Console"}
        body = json.dumps(wire.body, ensure_ascii=False).encode()
        answer = egress.request("POST", wire.url, headers=headers, body=body)
        told = of_answer(answer)
        return told if told.error else self.refusal(answer) or told


def _sign(key: str, message: str) -> str:
    return base64.b64encode(hmac.new(key.encode(), message.encode(), hashlib.sha256).digest()).decode()


def _number(answer: egress.Answer, *names: str) -> tuple[int, str] | None:
    """The service's own code and words; None when the body is not as it documents it."""
    try:
        told = json.loads(answer.body)
        code = next(told[name] for name in names if name in told)
        words = told.get("errmsg") or told.get("msg") or told.get("StatusMessage") or ""
        return int(code), str(words)
    except (ValueError, TypeError, StopIteration, AttributeError):
        return None


def _judge(answer: egress.Answer, names: tuple[str, ...], busy: frozenset[int]) -> Outcome | None:
    told = _number(answer, *names)
    if told is None:
        return Outcome(answer.status, "rejected", answer.body[:120].decode("utf-8", "replace"))
    code, words = told
    if code == 0:
        return None
    if code in busy:
        return Outcome(code, "busy", words[:200], again=True, pause_s=60)
    return Outcome(code, "rejected", words[:200])


def _texts(message: Message, most_bytes: int, text_of: Callable[[MessageLine], str]) -> Sequence[str]:
    """Return the first lines as `text_of` writes them, and at the end how many are left out, if any."""
    shown, left = message.first_lines(MOST_LINES, most_bytes, text_of)
    return [*shown, *([more(left)] if left else [])]


def _join(message: Message, most_bytes: int, text_of: Callable[[MessageLine], str]) -> str:
    return "\n\n".join(_texts(message, most_bytes, text_of))


def _flat(text: str) -> str:
    """Text in which nothing becomes a link, a mention or a tag, whatever a job is called."""
    return text.translate(_FLAT)


_FLAT: Final = str.maketrans({"<": "＜", ">": "＞", "[": "［", "]": "］", "@": "＠", "`": "'"})


def _markdown_title(line: MessageLine) -> str:
    return f"[{_flat(line.title)}]({line.url})" if line.url else _flat(line.title)


def _fence(log: str) -> str:
    return "```\n" + log.replace("```", "'''") + "\n```"


# --- Slack -----------------------------------------------------------------------------------------------


def _mrkdwn(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _slack_line(line: MessageLine) -> str:
    title = f"<{line.url}|{_mrkdwn(line.title).replace('|', '¦')}>" if line.url else _mrkdwn(line.title)
    parts = [f"*{title}*", *(_mrkdwn(text) for text in (line.text, line.place) if text)]
    if line.log:
        parts.append(_fence(_mrkdwn("\n".join(line.log))))
    return "\n".join(parts)


def slack(address: Address, message: Message, now: float) -> Wire:
    """An incoming webhook's `text`, in mrkdwn (at most 40,000 characters)."""
    text = _join(message, 30_000, _slack_line)
    return Wire(address["url"], {"text": text, "unfurl_links": False, "unfurl_media": False})


# --- Mattermost, Discord, Teams --------------------------------------------------------------------------


def _markdown_link_line(line: MessageLine) -> str:
    parts = [f"**{_markdown_title(line)}**", *(_flat(text) for text in (line.text, line.place) if text)]
    if line.log:
        parts.append(_fence("\n".join(line.log)))
    return "\n".join(parts)


def mattermost(address: Address, message: Message, now: float) -> Wire:
    """An incoming webhook's `text`, in Markdown (at most 16,383 characters)."""
    return Wire(address["url"], {"text": _join(message, 14_000, _markdown_link_line)})


def discord(address: Address, message: Message, now: float) -> Wire:
    """Return a webhook's embed (at most 4,096 characters of Markdown), which mentions nobody."""
    url = address["url"].replace("://discordapp.com/", "://discord.com/", 1)  # its former name
    embed = {"description": _join(message, 3900, _markdown_link_line)}
    return Wire(url, {"embeds": [embed], "allowed_mentions": {"parse": []}})


def _teams_line(line: MessageLine) -> str:
    rest = (_flat(text) for text in (line.text, line.place, *line.log) if text)
    return "\n\n".join([f"**{_markdown_title(line)}**", *rest])


def teams(address: Address, message: Message, now: float) -> Wire:
    """Return a workflow's message with an adaptive card (28 KB), a block of text for each line."""
    texts = _texts(message, 14_000, _teams_line)
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [{"type": "TextBlock", "text": text, "wrap": True} for text in texts],
        "msteams": {"width": "full"},
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return Wire(address["url"], {"type": "message", "attachments": [attachment]})


# --- Telegram --------------------------------------------------------------------------------------------

TELEGRAM_API: Final = "https://api.telegram.org"


def telegram(address: Address, message: Message, now: float) -> Wire:
    """Return the Bot API's `sendMessage` (4,096 characters), as text in which nothing is markup."""
    body = {
        "chat_id": address["chat"],
        "text": _join(message, 3900, plain),
        "link_preview_options": {"is_disabled": True},
    }
    return Wire(f"{TELEGRAM_API}/bot{address['token']}/sendMessage", body)


# --- DingTalk --------------------------------------------------------------------------------------------

DINGTALK_BUSY: Final = frozenset({-1, 130101, 130102, 410100, 660026})


def _dingtalk_line(line: MessageLine) -> str:
    parts = [f"#### {_markdown_title(line)}", *(_flat(text) for text in (line.text, line.place) if text)]
    parts += [f"> {_flat(each)}" for each in line.log]
    return "\n\n".join(parts)


def dingtalk(address: Address, message: Message, now: float) -> Wire:
    """A custom robot's `markdown` message (20,000 bytes), signed when it has a secret."""
    url = address["url"]
    if secret := address.get("secret"):
        timestamp = str(round(now * 1000))
        sign = quote_plus(_sign(secret, f"{timestamp}\n{secret}"))
        url = f"{url}&timestamp={timestamp}&sign={sign}"
    markdown = {
        "title": truncate(_flat(message.subject), 200),
        "text": _join(message, 16_000, _dingtalk_line),
    }
    return Wire(url, {"msgtype": "markdown", "markdown": markdown, "at": {"isAtAll": False}})


# --- Feishu, Lark ----------------------------------------------------------------------------------------

FEISHU_BUSY: Final = frozenset({11232, 11233})


FEISHU_BYTES: Final = 4000
"""The longest part of a line."""


def _feishu_line(line: MessageLine) -> list[list[dict[str, str]]]:
    title = {"tag": "a", "text": line.title, "href": line.url} if line.url else _text(line.title)
    rest = [text for text in (line.text, line.place, "\n".join(line.log)) if text]
    return [[title], *([_text(truncate(text, FEISHU_BYTES))] for text in rest)]


def _text(text: str) -> dict[str, str]:
    return {"tag": "text", "text": text}


def feishu(address: Address, message: Message, now: float) -> Wire:
    """A custom bot's `post` message (20 KB), signed when it has a secret."""
    shown, left = message.first_lines(MOST_LINES, 14_000, plain)
    content = [row for line in message.lines[: len(shown)] for row in _feishu_line(line)]
    if left:
        content.append([_text(more(left))])
    post = {"en_us": {"title": truncate(message.subject, 200), "content": content}}
    body: dict[str, Any] = {"msg_type": "post", "content": {"post": post}}
    if secret := address.get("secret"):
        timestamp = str(int(now))
        body |= {"timestamp": timestamp, "sign": _sign(f"{timestamp}\n{secret}", "")}
    return Wire(address["url"], body)


# --- WeCom -----------------------------------------------------------------------------------------------

WECOM_BUSY: Final = frozenset({-1, 45009, 45033})
WECOM_BYTES: Final = 4096


def _wecom_line(line: MessageLine) -> str:
    rest = (f"> {_flat(text)}" for text in (line.text, line.place, *line.log) if text)
    return "\n".join([f"**{_markdown_title(line)}**", *rest])


def wecom(address: Address, message: Message, now: float) -> Wire:
    """A group robot's `markdown` message (4,096 bytes)."""
    text = _join(message, WECOM_BYTES - 300, _wecom_line)
    return Wire(address["url"], {"msgtype": "markdown", "markdown": {"content": truncate(text, WECOM_BYTES)}})


SLACK: Final = Chat(slack)
MATTERMOST: Final = Chat(mattermost)
DISCORD: Final = Chat(discord)
TEAMS: Final = Chat(teams)
TELEGRAM: Final = Chat(telegram)
DINGTALK: Final = Chat(dingtalk, lambda answer: _judge(answer, ("errcode",), DINGTALK_BUSY))
FEISHU: Final = Chat(feishu, lambda answer: _judge(answer, ("code", "StatusCode"), FEISHU_BUSY))
WECOM: Final = Chat(wecom, lambda answer: _judge(answer, ("errcode",), WECOM_BUSY))
