"""Recipients and channels of an event: one transaction an event, begun by claiming it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import structlog
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from jobs.faults import fault
from jobs.live import bus
from jobs.models import Channel, DeliveryItem, Job, Notification, NotificationEvent, NotificationRule
from jobs.models.kinds import ALWAYS, ON_PAGE, Kind
from jobs.notifications import alerts, sweep_summaries, times
from jobs.states import TERMINAL, ReasonCode
from quotas.access import MANAGERS, is_active, role_in
from quotas.models import Membership, User

log = structlog.get_logger(__name__)

AT_ONCE: Final = 500
MOST_PEOPLE: Final = 500


def route() -> int:
    """Route every new event to its recipients; return how many there were."""
    found = list(
        NotificationEvent.objects.filter(routed=False).order_by("id").values_list("pk", flat=True)[:AT_ONCE]
    )
    return sum(_route(pk) for pk in found)


@transaction.atomic
def _route(pk: int) -> bool:
    event = NotificationEvent.objects.select_related("job__owner", "quota").get(pk=pk)
    if event.job is not None:
        event.params["owner"] = event.job.owner.get_username()
    if not NotificationEvent.objects.filter(pk=pk, routed=False).update(routed=True, params=event.params):
        return False
    rules = list(_rules_of_named(event) if event.people else _rules_of_interested(event))
    people = {rule.channel.person_id for rule in rules if rule.channel.kind == Channel.Kind.PAGE}
    readers = [person for person in people if person]
    sweep = sweep_summaries.find_sweeps([event]).get(event.job_id or 0)
    if sweep is not None:
        sweep_summaries.renew(event, sweep, readers)
    else:
        Notification.objects.bulk_create(
            [Notification(person_id=person, event=event) for person in readers], ignore_conflicts=True
        )
    _add_items(event, [rule for rule in rules if rule.channel.kind != Channel.Kind.PAGE])
    for workspace_id, names in _listeners(event, readers).items():
        bus.publish_on_commit(workspace_id, *names)
    fault("route.before_commit")
    return True


def _add_items(event: NotificationEvent, rules: Iterable[NotificationRule]) -> None:
    """Store one item a channel, due at the earliest time of its rules."""
    items: dict[int, DeliveryItem] = {}
    now = timezone.now()
    for rule in rules:
        due = times.next_due(rule, now)
        item = items.setdefault(rule.channel_id, DeliveryItem(channel=rule.channel, event=event, due_at=due))
        item.due_at = min(item.due_at, due)
        item.log_lines = item.log_lines or rule.log_lines
    DeliveryItem.objects.bulk_create(items.values(), ignore_conflicts=True)


def _listeners(event: NotificationEvent, people: list[int]) -> Mapping[int, list[str]]:
    """Return the names for the people's pages, by the workspace whose stream they listen to."""
    if event.workspace_id is not None:
        return {event.workspace_id: [bus.notifications_name(person) for person in people]}
    heard: dict[int, list[str]] = {}
    rows = Membership.objects.filter(user__in=people).order_by("user", "id")
    for person, workspace in dict(reversed(rows.values_list("user_id", "workspace_id"))).items():
        heard.setdefault(workspace, []).append(bus.notifications_name(person))
    return heard


# --- rules -----------------------------------------------------------------------------------------------


def page_rule(person: User) -> NotificationRule:
    """Return the rule of the person's page, made with every kind when it is first needed."""
    channel, _new = Channel.objects.get_or_create(
        person=person, kind=Channel.Kind.PAGE, defaults={"verified_at": timezone.now()}
    )
    rule, _new = NotificationRule.objects.get_or_create(channel=channel, defaults={"events": list(ON_PAGE)})
    return rule


def _rules() -> Any:
    """Those that are in force; for a channel that failed it is kept until somebody has fixed it."""
    kept = ("", Channel.Off.FAILED)
    ready = NotificationRule.objects.filter(channel__off__in=kept, channel__verified_at__isnull=False)
    return ready.select_related("channel__person").order_by("id")


def _rules_of_named(event: NotificationEvent) -> Iterator[NotificationRule]:
    """Yield the rules of named recipients: their page, and their channels for the kind."""
    for person in User.objects.filter(pk__in=event.people, is_active=True):
        yield page_rule(person)
    for rule in _rules().filter(channel__person__in=event.people, channel__person__is_active=True):
        if rule.channel.kind != Channel.Kind.PAGE and event.kind in rule.events:
            yield rule


def _rules_of_interested(event: NotificationEvent) -> Iterator[NotificationRule]:
    """Yield the rules that ask for the event, of recipients who may know of it."""
    own = _find_concerned(event)
    for person in User.objects.filter(pk__in=own, is_active=True):
        page_rule(person)
    quota_id = event.quota_id or (event.job.quota_id if event.job else None)
    asked = (
        Q(scope=NotificationRule.Scope.MINE, channel__person__in=own)
        | Q(scope=NotificationRule.Scope.WORKSPACE, workspace=event.workspace_id)
        | Q(scope=NotificationRule.Scope.QUOTA, quota=quota_id)
    )
    for rule in _rules().filter(asked):
        if _asks_for(rule, event) and may_know(rule.channel, event):
            yield rule
    if alerts.is_alert(event):
        for rule in _rules().filter(channel__person__in=own):
            if may_know(rule.channel, event):
                yield rule


def _find_concerned(event: NotificationEvent) -> list[int]:
    """Return the people concerned: a job's owner; a quota's managers and owners of unfinished jobs in it."""
    if event.job is not None:
        return [event.job.owner_id]
    if event.quota is None:
        return []
    managers = Membership.objects.filter(workspace=event.quota.workspace_id, role__in=MANAGERS)
    ended = [state.value for state in TERMINAL]
    owners = Job.objects.filter(quota=event.quota, deleted_at=None).exclude(state__in=ended).order_by()
    return [
        *managers.values_list("user_id", flat=True)[:MOST_PEOPLE],
        *owners.values_list("owner_id", flat=True).distinct()[:MOST_PEOPLE],
    ]


def _asks_for(rule: NotificationRule, event: NotificationEvent) -> bool:
    kind, params = event.kind, event.params
    if kind not in rule.events or kind in ALWAYS:
        return False
    if kind == Kind.WAITS:
        return bool(params.get("minutes") == rule.wait_minutes)
    if kind == Kind.QUOTA:
        return bool(params["before"] < rule.quota_percent <= params["percent"])
    return not (kind == Kind.STOPPED and _did_it(rule.channel, event))


def _did_it(channel: Channel, event: NotificationEvent) -> bool:
    """Tell whether the channel's person stopped their own job; webhooks are notified even so."""
    mine = event.job is not None and event.job.owner_id == channel.person_id
    by_owner = event.params.get("reason") == ReasonCode.USER_STOP
    return mine and by_owner and channel.kind != Channel.Kind.WEBHOOK


def may_know(channel: Channel, event: NotificationEvent) -> bool:
    """Tell whether the channel's readers may see the event; checked again when it is sent."""
    if channel.person is None:
        return event.workspace_id is None or channel.workspace_id == event.workspace_id
    if not is_active(channel.person):
        return False
    if event.people:
        return channel.person_id in event.people
    return event.workspace_id is not None and role_in(channel.person, event.workspace_id) is not None
