"""What receivers of webhooks rely on: the published schema, the bytes, the signature as documented."""

from __future__ import annotations

import json
import runpy
import time
from datetime import UTC, datetime

from console.home import CHECKOUT
from jobs.models.kinds import UNCHOSEN, Kind
from jobs.notifications.message import Message, MessageLine
from jobs.notifications.transports import webhook

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
SCHEMA = CHECKOUT / "docs" / "webhook.schema.json"
PAGE = CHECKOUT / "docs" / "notifications.md"
EXAMPLES = CHECKOUT / "docs" / "examples"


def message(count: int = 1) -> Message:
    lines = [MessageLine(number, "job.failed", "bad", AT, "bert failed.") for number in range(count)]
    return Message("0b9c", AT, lines, "https://console.example/notices/")


def test_webhook_published_schema_matches_code() -> None:
    assert json.loads(SCHEMA.read_text()) == webhook.Body.model_json_schema()


def test_webhook_documented_body_has_all_fields() -> None:
    shown = (EXAMPLES / "webhook.json").read_text()
    body = webhook.Body.model_validate_json(shown)
    assert set(json.loads(shown)) == set(webhook.Body.model_fields)
    assert set(json.loads(shown)["events"][0]["job"]) == set(webhook.JobBody.model_fields)
    assert body.events[0].kind == Kind.FAILED


def test_webhook_page_lists_every_event_kind() -> None:
    text = PAGE.read_text()
    assert [kind for kind in Kind if kind not in UNCHOSEN and f"`{kind}`" not in text] == []


def test_webhook_documented_receiver_accepts_only_genuine_messages() -> None:
    there = runpy.run_path(str(EXAMPLES / "webhook_receiver.py"))
    body, now = webhook.body_of(message()), str(int(time.time()))
    headers = {"X-Console-Timestamp": now, "X-Console-Delivery": "0b9c"}
    signed = {**headers, "X-Console-Signature": webhook.signature("s3cret", now, "0b9c", body)}
    assert there["is_genuine"](signed, body, "s3cret")
    assert not there["is_genuine"](signed, body + b" ", "s3cret")
    assert not there["is_genuine"](signed, body, "other")
    assert not there["is_genuine"]({**signed, "X-Console-Delivery": "0b9d"}, body, "s3cret")
    assert not there["is_genuine"]({**signed, "X-Console-Timestamp": "1700000000"}, body, "s3cret")
    both = {**signed, "X-Console-Signature": f"sha256=00,{signed['X-Console-Signature']}"}
    assert there["is_genuine"](both, body, "s3cret")


def test_webhook_body_over_event_limit_counts_the_rest() -> None:
    body = json.loads(webhook.body_of(message(webhook.MOST + 5)))
    assert (len(body["events"]), body["more"]) == (webhook.MOST, 5)


def test_webhook_body_of_same_message_is_byte_identical() -> None:
    assert webhook.body_of(message()) == webhook.body_of(message())
