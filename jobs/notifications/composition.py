"""Composition of a message: its events in the recipient's language and zone, links, the end of a log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from django.conf import settings
from django.core import signing
from django.urls import reverse
from django.utils import timezone, translation

from jobs.fault_tolerance.decisions import Fault
from jobs.logs import tail
from jobs.messages import state_label
from jobs.messages.notifications import notification_words
from jobs.messages.reasons import reason_message
from jobs.models import (
    Attempt,
    Channel,
    Delivery,
    DeliveryItem,
    Job,
    JobSecret,
    LogStream,
    NotificationEvent,
    PersonalSecret,
    Sweep,
)
from jobs.models.kinds import BAD, Kind, level
from jobs.notifications import routing, sweep_summaries, times
from jobs.notifications.message import Message, MessageLine
from jobs.states import State
from quotas.access import Verb, can

SALT: Final = "jobs.notifications"
CONFIRM_DAYS: Final = 3

SHORTEST_SECRET: Final = 4
"""A shorter value is not hidden in a log: it would hide every third word."""

HIDDEN: Final = "***"

WITH_LOG: Final = BAD | {Kind.PARTLY}


@contextmanager
def speaking_to(channel: Channel) -> Iterator[None]:
    """Activate the language and time zone of the channel's reader."""
    person = channel.person.language if channel.person else ""
    language = channel.language or person or settings.LANGUAGE_CODE
    with translation.override(language), timezone.override(times.zone_of(channel)):
        yield


def compose(delivery: Delivery) -> Message | None:
    """Return the message; None when its recipient may see none of it any more."""
    channel = delivery.channel
    with speaking_to(channel):
        lines = _test(delivery) if delivery.test else _lines(delivery)
        if not lines:
            return None
        unconfirmed = channel.kind == Channel.Kind.EMAIL and channel.verified_at is None
        about = (line.details.get("job") or line.details.get("sweep") or {} for line in lines)
        threads = {each.get("id") for each in about}
        return Message(
            id=str(delivery.public_id),
            at=delivery.created_at,
            lines=lines,
            url=absolute(reverse("notifications")),
            thread=str(threads.pop() or "") if len(threads) == 1 else "",
            unsubscribe=absolute(reverse("unsubscribe", args=[ticket(channel, "off")])),
            confirm=absolute(reverse("channel_confirm", args=[ticket(channel, "on")])) if unconfirmed else "",
        )


def absolute(path: str) -> str:
    """Return a page of the console as a link in a message."""
    return f"{settings.CONSOLE_URL}{path}"


def ticket(channel: Channel, purpose: str) -> str:
    """Return the signed ticket that stands for the channel in links of one purpose."""
    return signing.dumps([channel.pk, channel.shown], salt=f"{SALT}.{purpose}")


def channel_of(text: str, purpose: str, *, days: int | None = None) -> Channel | None:
    """Return the channel of a link's ticket; None when it has expired, or the channel was changed."""
    try:
        pk, shown = signing.loads(text, salt=f"{SALT}.{purpose}", max_age=days and days * 86_400)
    except (signing.BadSignature, TypeError, ValueError):
        return None
    return Channel.objects.filter(pk=pk, shown=shown).select_related("person", "workspace").first()


def _test(delivery: Delivery) -> list[MessageLine]:
    text = translation.gettext(
        "This is a test message. Notifications about jobs in this console will be sent here."
    )
    title = translation.gettext("Test message from Job Console.")
    return [MessageLine(0, "test", "info", delivery.created_at, title, text)]


def _lines(delivery: Delivery) -> list[MessageLine]:
    items = delivery.items.select_related(
        "event__job__owner",
        "event__job__workspace",
        "event__job__cluster",
        "event__job__quota",
        "event__quota__cluster",
    ).order_by("id")
    channel = delivery.channel
    known = [item for item in items if routing.may_know(channel, item.event)]
    groups: dict[object, list[DeliveryItem]] = {}
    # A program that listens gets each job; people get one line for a sweep's.
    is_program = channel.kind == Channel.Kind.WEBHOOK
    sweeps = {} if is_program else sweep_summaries.find_sweeps(item.event for item in known)
    for item in known:
        sweep = sweeps.get(item.event.job_id or 0) if item.event.kind in sweep_summaries.ENDS else None
        groups.setdefault(sweep or item.pk, []).append(item)
    return [
        _compose_sweep(channel, sweep, group)
        if isinstance(sweep, Sweep) and len(group) > 1
        else _compose_line(channel, group[0].event, log=group[0].log_lines)
        for sweep, group in groups.items()
    ]


def _compose_sweep(channel: Channel, sweep: Sweep, items: Sequence[DeliveryItem]) -> MessageLine:
    """Return the line for several jobs of a sweep that ended: how many by now, and the first that failed."""
    params = sweep_summaries.count_jobs(sweep)
    failed = next((item for item in items if item.event.kind == Kind.FAILED), None)
    first = _compose_line(channel, (failed or items[-1]).event, log=bool(failed and failed.log_lines))
    return MessageLine(
        id=items[-1].event.pk,
        kind=Kind.SWEEP.value,
        level=level(Kind.SWEEP, params),
        at=items[-1].event.at,
        title=notification_words(Kind.SWEEP, params).title,
        text=first.title if failed else "",
        place=f"{sweep.owner.get_username()} · {sweep.workspace.title}",
        url=absolute(reverse("sweep", args=[sweep.public_id])),
        log=first.log,
        details={"sweep": {"id": sweep.public_id, "name": sweep.name}},
    )


def _compose_line(channel: Channel, event: NotificationEvent, *, log: bool) -> MessageLine:
    words = notification_words(event.kind, event.params)
    job = event.job if event.job and event.job.deleted_at is None else None
    page = reverse("job", args=[job.public_id]) if job else ""
    if not page and event.kind == Kind.QUOTA:
        page = reverse("quotas")
    return MessageLine(
        id=event.pk,
        kind=event.kind,
        level=level(event.kind, event.params),
        at=event.at,
        title=words.title,
        text=words.text,
        place=_location(job) if job else "",
        url=absolute(page) if page else "",
        log=tuple(_log(channel, job)) if log and job and event.kind in WITH_LOG else (),
        details=_details(event, job),
    )


def _location(job: Job) -> str:
    """Return the job's owner, workspace, cluster and quota."""
    return f"{job.owner.get_username()} · {job.workspace.title} · {job.cluster.title} · {job.quota.title}"


def _details(event: NotificationEvent, job: Job | None) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if event.kind == Kind.QUOTA:
        details["quota"] = {
            name: event.params.get(name) for name in ("workspace", "cluster", "resource", "percent")
        } | {"name": event.params.get("quota")}
    if job is not None:
        code, params = event.params.get("reason") or "", event.params.get("reason_params") or {}
        details["job"] = {
            "id": job.public_id,
            "name": job.name,
            "owner": job.owner.get_username(),
            "workspace": job.workspace.slug,
            "cluster": job.cluster.slug,
            "quota": job.quota.slug,
            "state": job.state,
            "state_label": state_label(State(job.state)),
            "attempt": event.params.get("attempt"),
            "tasks_failed": event.params.get("failed"),
            "tasks_total": event.params.get("total"),
            "reason": {"code": code, "message": reason_message(code, params) if code else ""},
            "created_at": job.created_at,
            "started_at": job.started_at,
            "ended_at": job.ended_at,
        }
    return details


# --- the end of a log ------------------------------------------------------------------------------------


def _log(channel: Channel, job: Job) -> list[str]:
    """Return the last lines of the replica that failed first, without secrets, if the reader may see them.

    The line that says why the job failed is the first one where the last lines do not have it.
    """
    if not (can(channel.person, Verb.READ, job) if channel.person else job.is_public):
        return []
    attempt = Attempt.objects.filter(job=job, number=job.attempt_number).first()
    replica = tail.first_failed(attempt, job.run_number) if attempt else None
    if attempt is None or replica is None:
        return []
    place = {"role": replica.role, "index": replica.index, "run": job.run_number}
    stream = LogStream.objects.filter(attempt=attempt, **place).first()
    lines = tail.last_lines(stream) if stream else []
    why = Fault.from_json(attempt.fault).line if attempt.fault else ""
    if why and why not in map(str.strip, lines):
        lines = [why, *lines]
    return without_secrets(lines, job)


def without_secrets(lines: Sequence[str], job: Job) -> list[str]:
    """Return the lines with every secret of the job and of its owner hidden."""
    rows = [*JobSecret.objects.filter(job=job), *PersonalSecret.objects.filter(owner=job.owner_id)]
    values = {part for row in rows for part in row.reveal().splitlines() if len(part) >= SHORTEST_SECRET}
    hidden = []
    for line in lines:
        text = line
        for value in sorted(values, key=len, reverse=True):
            text = text.replace(value, HIDDEN)
        hidden.append(text)
    return hidden
