"""Drafts: kept while somebody types, listed, deleted, and nobody else's business."""

from __future__ import annotations

from jobs.models import Draft
from tests.jobs.views.conftest import People, browser, fragment, seen
from tests.jobs.views.test_new import HELLO


def test_typing_keeps_one_draft_and_counts_its_changes(people: People) -> None:
    client = browser(people.owner)
    headers = fragment("draft-state")
    answer = client.post("/drafts/save", {"text": "{"}, headers=headers)
    draft = Draft.objects.get()
    assert f'name="draft" value="{draft.pk}"' in seen(answer)
    client.post("/drafts/save", {"text": HELLO, "draft": draft.pk}, headers=headers)
    draft.refresh_from_db()
    assert (draft.text, draft.version, draft.name) == (HELLO, 2, "helloworld_16be675e")
    assert Draft.objects.count() == 1


def test_an_empty_form_is_no_draft(people: People) -> None:
    browser(people.owner).post("/drafts/save", {"text": " \n"})
    assert not Draft.objects.exists()


def test_what_no_database_can_hold_is_left_out(people: People) -> None:
    browser(people.owner).post("/drafts/save", {"text": "a\x00b"})
    assert Draft.objects.get().text == "ab"


def test_everybody_sees_and_saves_their_own(people: People) -> None:
    draft = Draft.objects.create(owner=people.owner, name="hers", text="her text")
    assert "hers" in seen(browser(people.owner).get("/drafts/"))
    for user in (people.member, people.manager, people.stranger, people.admin):
        client = browser(user)
        assert "hers" not in seen(client.get("/drafts/"))
        client.post("/drafts/save", {"text": "overwritten", "draft": draft.pk})
        assert client.post(f"/drafts/{draft.pk}/delete").status_code == 404
    draft.refresh_from_db()
    assert draft.text == "her text"


def test_a_draft_is_deleted_on_request(people: People) -> None:
    draft = Draft.objects.create(owner=people.owner)
    assert browser(people.owner).post(f"/drafts/{draft.pk}/delete")["Location"] == "/drafts/"
    assert not Draft.objects.exists()


def test_no_drafts_say_where_they_come_from(people: People) -> None:
    assert "kept here by itself" in seen(browser(people.owner).get("/drafts/"))


def test_drafts_ask_for_a_sign_in(db: None) -> None:
    assert browser().get("/drafts/").status_code == 302
    assert browser().post("/drafts/save", {"text": "x"}).status_code == 302
    assert not Draft.objects.exists()
