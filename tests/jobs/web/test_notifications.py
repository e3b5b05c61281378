"""The bell and the page of notifications: one's own alone, in one's own language."""

from __future__ import annotations

import pytest

from jobs.models import Job, Notification
from jobs.models.kinds import CHOICES
from jobs.notifications import Kind, inbox, routing, tell
from jobs.states import State
from quotas.models import Membership, User
from tests.factories import make_job
from tests.jobs.web.conftest import People, browser, seen

pytestmark = pytest.mark.django_db


def told(*people: User, text: str = "The cluster moves on Friday.", job: Job | None = None) -> None:
    tell(people, Kind.MESSAGE, {"text": text, "by": "root"}, job)
    routing.route()


def test_bell_counts_new_notifications_and_page_shows_them(people: People) -> None:
    told(people.owner)
    client = browser(people.owner)
    home = seen(client.get("/"))
    assert 'aria-label="1 new notification"' in home
    text = seen(client.get("/notices/"))
    assert "Message from root." in text
    assert "The cluster moves on Friday." in text


@pytest.mark.parametrize("who", ["member", "manager", "stranger", "admin"])
def test_notifications_of_others_are_neither_shown_nor_marked(people: People, who: str) -> None:
    told(people.owner)
    client = browser(getattr(people, who))
    assert "Friday" not in seen(client.get("/notices/"))
    assert "new notification" not in seen(client.get("/notices/bell"))
    client.post("/notices/read", {"up_to": "999999999"})
    assert inbox.unread(people.owner) == 1


def test_mark_read_covers_shown_notifications_not_newer_ones(people: People) -> None:
    told(people.owner)
    client = browser(people.owner)
    shown = client.get("/notices/").context["newest"]
    told(people.owner, text="And comes back on Monday.")
    assert client.post("/notices/read", {"up_to": str(shown)})["Location"] == "/notices/"
    assert inbox.unread(people.owner) == 1


@pytest.mark.parametrize("wrong", ["", "x", "-1", "9" * 40, "١"])
def test_invalid_numbers_mark_no_notification_as_read(people: People, wrong: str) -> None:
    told(people.owner)
    client = browser(people.owner)
    assert client.post("/notices/read", {"up_to": wrong}).status_code == 302
    assert client.get("/notices/", {"before": wrong}).status_code == 200
    assert inbox.unread(people.owner) == 1


def test_notification_text_is_escaped(people: People) -> None:
    told(people.owner, text="<script>alert(1)</script>")
    assert "<script>alert" not in browser(people.owner).get("/notices/").content.decode()


def test_job_link_is_shown_only_to_permitted_users(people: People) -> None:
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota)
    told(people.owner, job=job)
    client, link = browser(people.owner), f"/jobs/{job.public_id}/"
    assert link in seen(client.get("/notices/"))
    Membership.objects.filter(user=people.owner).delete()
    assert link not in seen(client.get("/notices/"))


def test_notifications_page_uses_the_readers_language(people: People) -> None:
    User.objects.filter(pk=people.owner.pk).update(language="ja")
    assert 'lang="ja"' in seen(browser(people.owner).get("/notices/"))


def test_notification_pages_continue_after_the_previous_one(people: People) -> None:
    for number in range(inbox.PAGE + 2):
        tell([people.owner], Kind.MESSAGE, {"text": f"number {number}."})
    routing.route()
    client = browser(people.owner)
    first = client.get("/notices/")
    assert "number 1." not in seen(first)
    older = seen(client.get(first.context["next_url"]))
    assert "number 1." in older
    assert "number 5." not in older


def test_consecutive_notifications_of_one_kind_are_grouped(people: People) -> None:
    tell([people.owner], Kind.FAILED, {"name": "before"})
    for number in range(60):
        tell([people.owner], Kind.SUCCEEDED, {"name": f"job-{number}."})
    tell([people.owner], Kind.FAILED, {"name": "after"})
    routing.route()
    rows = inbox.list_notifications(people.owner).rows
    assert [len(row.others) for row in rows] == [0, 59, 0]
    page = browser(people.owner).get("/notices/")
    assert "59 similar notification" in seen(page)
    assert not page.context["next_url"]
    inbox.read(people.owner, rows[1].others[-1].pk)
    assert [len(row.others) for row in inbox.list_notifications(people.owner).rows] == [0, 58, 0, 0]


def test_bell_count_above_the_limit_is_shown_as_99_plus(people: People) -> None:
    for _number in range(inbox.COUNTED + 5):
        tell([people.owner], Kind.MESSAGE, {"text": "again"})
    routing.route()
    assert "99+" in seen(browser(people.owner).get("/notices/bell"))


def test_empty_notifications_page_shows_explanation(people: People) -> None:
    assert "No notifications" in seen(browser(people.owner).get("/notices/"))


@pytest.mark.parametrize("kind", [value for value, _label in CHOICES])
def test_notification_kind_without_details_still_has_a_sentence(people: People, kind: str) -> None:
    tell([people.owner], Kind(kind), {"name": "bert"})
    routing.route()
    [row] = inbox.list_notifications(people.owner).rows
    assert row.told.title
    assert row.told.title != kind
    assert "%(" not in row.told.title + row.told.text


def test_notification_is_deleted_with_its_event(people: People) -> None:
    told(people.owner)
    Notification.objects.get().event.delete()
    assert "No notifications" in seen(browser(people.owner).get("/notices/"))
