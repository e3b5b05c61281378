"""Each service's own words: the body that its documentation shows, its signature, and how it says no."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pytest_django import Settings

from jobs.models import Channel
from jobs.notifications import transports
from jobs.notifications.message import Message, MessageLine
from jobs.notifications.transports import chats
from jobs.notifications.transports.outcome import Outcome
from jobs.outbound import egress
from jobs.outbound.addresses import Refused
from tests.jobs.receivers import Came, receiving

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
URL = "https://console.example/jobs/abc/"
LINE = MessageLine(
    7, "job.failed", "bad", AT, "bert failed.", "Failed. Exit code 1.", "alice · Vision", URL, ("OOM",)
)
DISCORD = "https://discord.com/api/webhooks/123456789012345678/token-token"
TEAMS = "https://prod-1.westeurope.logic.azure.com:443/workflows/643e69f83c8944/triggers/manual/paths/invoke?api-version=2022-03-01-preview&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=KODuebWbDGYFr0z0eu-6Rj8aUKz7108W3wrNJZxFE5A"
TELEGRAM = {"token": "123456789:" + "A" * 35, "chat": "-100123"}


def message(*lines: MessageLine) -> Message:
    return Message("8d5b-id", AT, lines or (LINE,), "https://console.example/notices/")


def many(count: int, **columns: Any) -> Message:
    words = {"title": "bert failed.", "text": "x" * 300, "url": URL} | columns
    return message(*(MessageLine(number, "job.failed", "bad", AT, **words) for number in range(count)))


# --- the bodies ------------------------------------------------------------------------------------------


def test_slack_sends_documented_body() -> None:
    wire = chats.slack({"url": "https://hooks.slack.com/services/T/B/x"}, message(), 0)
    assert wire.url == "https://hooks.slack.com/services/T/B/x"
    assert wire.body == {
        "text": f"*<{URL}|bert failed.>*\nFailed. Exit code 1.\nalice · Vision\n```\nOOM\n```",
        "unfurl_links": False,
        "unfurl_media": False,
    }


def test_mattermost_sends_documented_body() -> None:
    wire = chats.mattermost({"url": "https://chat.example/hooks/x"}, message(), 0)
    assert wire.body == {
        "text": f"**[bert failed.]({URL})**\nFailed. Exit code 1.\nalice · Vision\n```\nOOM\n```"
    }


def test_dingtalk_with_secret_signs_message() -> None:
    """The signature: HMAC-SHA256 of timestamp, newline and secret under the secret; Base64, URL-encoded."""
    address = {"url": "https://oapi.dingtalk.com/robot/send?access_token=abc", "secret": "SEC123"}
    wire = chats.dingtalk(address, message(), 1_700_000_000.5)
    query = parse_qs(urlsplit(wire.url).query)
    signed = hmac.new(b"SEC123", b"1700000000500\nSEC123", hashlib.sha256).digest()
    assert query == {
        "access_token": ["abc"],
        "timestamp": ["1700000000500"],
        "sign": [base64.b64encode(signed).decode()],
    }
    assert "%25" not in wire.url, "encoded once"
    assert wire.body == {
        "msgtype": "markdown",
        "markdown": {
            "title": "bert failed.",
            "text": f"#### [bert failed.]({URL})\n\nFailed. Exit code 1.\n\nalice · Vision\n\n> OOM",
        },
        "at": {"isAtAll": False},
    }


def test_dingtalk_without_a_secret_has_no_signature() -> None:
    address = {"url": "https://oapi.dingtalk.com/robot/send?access_token=abc"}
    assert chats.dingtalk(address, message(), 0).url == address["url"]


def test_feishu_with_secret_signs_message() -> None:
    """The signature: HMAC-SHA256 of nothing under timestamp, newline and secret; Base64."""
    address = {"url": "https://open.feishu.cn/open-apis/bot/v2/hook/x", "secret": "demo"}
    wire = chats.feishu(address, message(), 1_599_360_473.9)
    sign = base64.b64encode(hmac.new(b"1599360473\ndemo", b"", hashlib.sha256).digest()).decode()
    rows = [
        [{"tag": "a", "text": "bert failed.", "href": URL}],
        [{"tag": "text", "text": "Failed. Exit code 1."}],
        [{"tag": "text", "text": "alice · Vision"}],
        [{"tag": "text", "text": "OOM"}],
    ]
    assert wire.url == address["url"]
    assert wire.body == {
        "timestamp": "1599360473",
        "sign": sign,
        "msg_type": "post",
        "content": {"post": {"en_us": {"title": "bert failed.", "content": rows}}},
    }


def test_wecom_sends_documented_body() -> None:
    wire = chats.wecom({"url": "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=k"}, message(), 0)
    assert wire.body == {
        "msgtype": "markdown",
        "markdown": {
            "content": f"**[bert failed.]({URL})**\n> Failed. Exit code 1.\n> alice · Vision\n> OOM"
        },
    }


def test_discord_disables_all_mentions() -> None:
    wire = chats.discord({"url": DISCORD}, message(), 0)
    assert wire.url == DISCORD
    text = f"**[bert failed.]({URL})**\nFailed. Exit code 1.\nalice · Vision\n```\nOOM\n```"
    assert wire.body == {"embeds": [{"description": text}], "allowed_mentions": {"parse": []}}


def test_discord_url_uses_present_domain() -> None:
    former = DISCORD.replace("discord.com", "discordapp.com")
    assert chats.discord({"url": former}, message(), 0).url == DISCORD


def test_teams_sends_documented_body() -> None:
    wire = chats.teams({"url": TEAMS}, message(), 0)
    assert wire.url == TEAMS
    text = f"**[bert failed.]({URL})**\n\nFailed. Exit code 1.\n\nalice · Vision\n\nOOM"
    assert wire.body == {
        "type": "message",
        "attachments": [
            {
                "contentType": "application/vnd.microsoft.card.adaptive",
                "content": {
                    "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                    "type": "AdaptiveCard",
                    "version": "1.4",
                    "body": [{"type": "TextBlock", "text": text, "wrap": True}],
                    "msteams": {"width": "full"},
                },
            }
        ],
    }


def test_telegram_sends_documented_body() -> None:
    wire = chats.telegram(TELEGRAM, message(), 0)
    assert wire.url == f"https://api.telegram.org/bot{TELEGRAM['token']}/sendMessage"
    assert wire.body == {
        "chat_id": "-100123",
        "text": f"bert failed.\nFailed. Exit code 1.\nalice · Vision\n{URL}\nEnd of the log:\n    OOM",
        "link_preview_options": {"is_disabled": True},
    }


LIMITS = [
    (chats.slack, "text", 40_000),
    (chats.mattermost, "text", 16_383),
    (chats.dingtalk, "markdown", 20_000),
    (chats.feishu, "content", 20_000),
    (chats.wecom, "markdown", 4_200),
    (chats.discord, "embeds", 4_096),
    (chats.teams, "attachments", 28_000),
    (chats.telegram, "text", 4_096),
]


@pytest.mark.parametrize(("wire", "part", "limit"), LIMITS)
@pytest.mark.parametrize("text", ["x" * 300, "字" * 300, "字" * 40_000])
def test_chat_message_of_any_size_stays_within_service_limit(
    wire: Any, part: str, limit: int, text: str
) -> None:
    body = wire({"url": "https://x.example/", **TELEGRAM}, many(200, text=text), 0).body
    assert len(json.dumps(body[part], ensure_ascii=False).encode()) <= limit
    assert "more in the console." in json.dumps(body, ensure_ascii=False)


MEAN = "<!channel> <@all> @all [click](https://evil.example) `x` <font color=red>"


@pytest.mark.parametrize("wire", [chats.dingtalk, chats.wecom, chats.mattermost, chats.discord, chats.teams])
def test_chat_job_name_mentions_no_user_and_adds_no_link(wire: Any) -> None:
    text = json.dumps(
        wire({"url": "https://x.example/?a=b"}, many(1, title=MEAN), 0).body, ensure_ascii=False
    )
    assert "(https://evil" not in text.replace("］(https://evil", "")
    assert "<" not in text
    assert "@" not in text


def test_slack_job_name_is_escaped() -> None:
    text = chats.slack({"url": "https://x.example/"}, many(1, title=MEAN, url=""), 0).body["text"]
    assert "<" not in text
    assert "&lt;!channel&gt;" in text


# --- the answers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chat", "status", "body", "error", "again"),
    [
        (chats.SLACK, 200, b"ok", "", False),
        (chats.SLACK, 404, b"no_service", "rejected", False),
        (chats.SLACK, 429, b"", "busy", True),
        (chats.DINGTALK, 200, b'{"errcode":0,"errmsg":"ok"}', "", False),
        (chats.DINGTALK, 200, b'{"errcode":310000,"errmsg":"sign not match"}', "rejected", False),
        (chats.DINGTALK, 200, b'{"errcode":130101,"errmsg":"send too fast"}', "busy", True),
        (chats.DINGTALK, 200, b"<html>", "rejected", False),
        (chats.FEISHU, 200, b'{"code":0,"msg":"success"}', "", False),
        (chats.FEISHU, 200, b'{"StatusCode":0,"StatusMessage":"success"}', "", False),
        (chats.FEISHU, 200, b'{"code":19021,"msg":"sign match fail"}', "rejected", False),
        (chats.FEISHU, 200, b'{"code":11232,"msg":"frequency limited"}', "busy", True),
        (chats.WECOM, 200, b'{"errcode":0,"errmsg":"ok"}', "", False),
        (chats.WECOM, 200, b'{"errcode":93000,"errmsg":"invalid webhook url"}', "rejected", False),
        (chats.WECOM, 200, b'{"errcode":45009,"errmsg":"api freq out of limit"}', "busy", True),
        (chats.WECOM, 502, b"", "trouble", True),
    ],
)
def test_chat_outcome_is_read_from_answer_body(
    chat: chats.Chat, status: int, body: bytes, error: str, again: bool, settings: Settings
) -> None:
    with receiving() as receiver:
        settings.CONSOLE_EGRESS_HOSTS = [f"http://127.0.0.1:{receiver.port}"]
        receiver.reply = lambda _came: (status, {}, body)
        told = chat.send({"url": receiver.url("/x?y=z")}, message())
        assert (told.error, told.again) == (error, again)
        assert json.loads(receiver.came[0].body)


@pytest.mark.parametrize(
    ("chat", "path", "address"),
    [
        (chats.DISCORD, "/api/webhooks/123/token-token?wait=true", {}),
        (chats.TEAMS, urlsplit(TEAMS).path + "?" + urlsplit(TEAMS).query, {}),
        (chats.TELEGRAM, f"/bot{TELEGRAM['token']}/sendMessage", TELEGRAM),
    ],
)
@pytest.mark.parametrize(
    ("headers", "outcome"),
    [
        ({}, Outcome(200)),
        ({}, Outcome(204)),
        ({}, Outcome(404, "rejected", "404 Not Found")),
        ({"Retry-After": "1"}, Outcome(429, "busy", again=True, pause_s=1)),
    ],
)
def test_chat_outcome_by_status_needs_one_post(
    chat: chats.Chat,
    path: str,
    address: dict[str, str],
    headers: dict[str, str],
    outcome: Outcome,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with receiving() as receiver:
        settings.CONSOLE_EGRESS_HOSTS = [f"http://127.0.0.1:{receiver.port}"]
        monkeypatch.setattr(chats, "TELEGRAM_API", receiver.url(""))
        receiver.reply = lambda _came: (outcome.code or 0, headers, b"")
        address = address or {"url": receiver.url(path)}
        assert chat.send(address, message()) == outcome
        [came] = receiver.came
        assert came.path == path
        assert came.headers["content-type"] == "application/json; charset=utf-8"
        assert json.loads(came.body) == chat.wire(address, message(), 0).body


@pytest.mark.parametrize("kind", ["discord", "teams"])
def test_webhook_to_local_machine_is_refused(kind: str, settings: Settings) -> None:
    with receiving() as receiver:
        settings.CONSOLE_EGRESS_PORTS = [str(receiver.port)]
        inside = receiver.url("/workflows/x", scheme="https")
        assert transports.send(kind, {"url": inside}, message()).error == "address"
        assert receiver.connections == 0


@pytest.mark.parametrize("kind", ["discord", "teams"])
@pytest.mark.parametrize(
    "url", ["exec://x", "file:///etc/passwd", "dbus://", "syslog://", "json://127.0.0.1"]
)
def test_webhook_with_wrong_scheme_is_refused(kind: str, url: str) -> None:
    assert transports.send(kind, {"url": url}, message()).error == "scheme"


def test_transport_exists_for_every_kind_but_page() -> None:
    assert set(transports.TRANSPORTS) == set(Channel.Kind) - {Channel.Kind.PAGE}


@pytest.mark.parametrize(
    ("problem", "error", "again"),
    [(Refused("address", "10.0.0.1"), "address", False), (egress.Failed("timeout"), "timeout", True)],
)
def test_transport_reports_failed_requests(
    problem: Exception, error: str, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def request(*_args: Any, **_kwargs: Any) -> egress.Answer:
        raise problem

    monkeypatch.setattr(egress, "request", request)
    for kind, address in [("slack", {"url": "https://x/"}), ("discord", {"url": DISCORD})]:
        told = transports.send(kind, address, message())
        assert (told.error, told.again) == (error, again)


def test_chat_redirect_is_reported_not_followed(settings: Settings) -> None:
    """A redirect is an answer like any other, and none that is followed."""
    with receiving() as receiver, receiving() as inside:
        settings.CONSOLE_EGRESS_HOSTS = [f"http://127.0.0.1:{receiver.port}"]
        receiver.reply = partial(_moved, inside.url())
        assert chats.SLACK.send({"url": receiver.url()}, message()).error == "redirect"
        assert inside.connections == 0


def _moved(there: str, _came: Came) -> tuple[int, dict[str, str], bytes]:
    return 307, {"Location": there}, b""
