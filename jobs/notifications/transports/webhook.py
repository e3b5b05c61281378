"""Webhooks: one JSON object, signed, whose schema is docs/webhook.schema.json.

The signature is HMAC-SHA256 under the channel's secret of `<timestamp>.<delivery>.<body>`; while a secret is
being exchanged there are two of them.  A receiver refuses timestamps that are older than five minutes and
deliveries that it has seen.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal

from django.conf import settings
from django.utils import timezone
from pydantic import BaseModel, ConfigDict, Field

from jobs.notifications.message import Message, MessageLine
from jobs.notifications.transports.outcome import Outcome, of_answer
from jobs.outbound import egress

MOST: Final = 200
"""Events in one delivery; the body has the number of further ones."""


class Shape(BaseModel):
    """Base of every object of the body."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class ReasonBody(Shape):
    """Reason of a job's state; `message` is in the channel's language."""

    code: str
    message: str


class JobBody(Shape):
    """The job when the message was made; `attempt`, `tasks_…` and `reason` are those of the event."""

    id: str
    name: str
    owner: str
    workspace: str
    cluster: str
    quota: str
    state: str
    attempt: int | None
    tasks_failed: int | None
    tasks_total: int | None
    reason: ReasonBody
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


class QuotaBody(Shape):
    """The quota that is nearly used; `resource` is the most used one."""

    name: str
    workspace: str
    cluster: str
    resource: str
    percent: int


class EventBody(Shape):
    """One thing that happened.  `id` grows; the same event has the same id in every channel."""

    id: int
    kind: str
    level: Literal["ok", "info", "warn", "bad"]
    at: datetime
    title: str
    text: str
    url: str
    job: JobBody | None = None
    quota: QuotaBody | None = None
    log: list[str] = Field(default_factory=list, description="The last lines of the log, if asked for.")


class Body(Shape):
    """The body of a delivery.  `id` is that of the delivery: the same when it is sent again."""

    version: Literal[1] = 1
    id: str
    console: str
    created_at: datetime
    events: list[EventBody]
    more: int = Field(0, description="How many more events there were than are listed.")


def body_of(message: Message) -> bytes:
    """Return the bytes that are sent and signed; the same at every try."""
    body = Body(
        id=message.id,
        console=settings.CONSOLE_URL,
        created_at=message.at,
        events=[_event(line) for line in message.lines[:MOST]],
        more=max(0, len(message.lines) - MOST),
    )
    return body.model_dump_json().encode()


def _event(line: MessageLine) -> EventBody:
    values: dict[str, Any] = {
        name: getattr(line, name) for name in ("id", "kind", "level", "at", "title", "text", "url")
    }
    return EventBody(**values, **line.details, log=list(line.log))


def signature(secret: str, timestamp: str, delivery: str, body: bytes) -> str:
    """Return the signature of one delivery at one time."""
    signed = f"{timestamp}.{delivery}.".encode() + body
    return "sha256=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def send(address: Mapping[str, str], message: Message) -> Outcome:
    """POST it to the channel's URL."""
    body = body_of(message)
    timestamp = str(int(timezone.now().timestamp()))
    secrets = [address["secret"]]
    if float(address.get("both_until", "0")) > timezone.now().timestamp():
        secrets.append(address["secret_before"])
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Job-Console",
        "X-Console-Event": message.lines[0].kind if len(message.lines) == 1 else "several",
        "X-Console-Delivery": message.id,
        "X-Console-Timestamp": timestamp,
        "X-Console-Signature": ",".join(signature(each, timestamp, message.id, body) for each in secrets),
    }
    return of_answer(egress.request("POST", address["url"], headers=headers, body=body))
