"""Whoever sends a message is killed right before or right after: it arrives, under one id."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.jobs.receivers import Receiver, receiving
from tests.kill.conftest import Arena
from tests.waiting import wait_for

pytestmark = pytest.mark.kill

CHANNEL = """
from jobs.models import Channel, NotificationRule
from jobs.models.kinds import Kind
from quotas.models import User
from django.utils import timezone
row = Channel(person=User.objects.get(username="admin"), kind="webhook", verified_at=timezone.now())
row.encrypt({{"url": "{url}", "secret": "x"}})
row.save()
NotificationRule.objects.create(channel=row, events=[Kind.SUCCEEDED])
"""


@pytest.fixture
def hook(arena: Arena) -> Iterator[Receiver]:
    with receiving(port=arena.hook_port) as receiver:
        arena.stack.python(CHANNEL.format(url=receiver.url()))
        yield receiver
        arena.stack.python(
            "from jobs.models import Channel\nChannel.objects.filter(kind='webhook').delete()\n"
        )


@pytest.mark.parametrize(
    ("point", "times"), [("notification.before_send", 1), ("notification.after_send", 2)]
)
def test_notification_survives_kill_around_sending_under_one_id(
    arena: Arena, hook: Receiver, point: str, times: int
) -> None:
    arena.arm(point, "KILL")
    public_id = arena.submit(point.replace(".", "-").replace("_", "-"), lines=3)
    wait_for(lambda: arena.taken(point), 60)
    wait_for(lambda: len(hook.came) == times, 120, interval=0.5)
    assert len({came.headers["x-console-delivery"] for came in hook.came}) == 1
    assert {event["job"]["id"] for came in hook.came for event in json.loads(came.body)["events"]} == {
        public_id
    }
