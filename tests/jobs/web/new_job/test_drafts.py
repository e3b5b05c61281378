"""Drafts: kept while somebody types, listed, deleted, and nobody else's business."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.test import Client
from django.utils import timezone

from jobs.models import Draft, DraftVersion, Job
from jobs.submission.drafts import KEEP_EVERY, MOST_VERSIONS
from tests.jobs.web.conftest import People, browser, fragment, seen
from tests.jobs.web.test_new import HELLO

if TYPE_CHECKING:
    from django.test.client import _MonkeyPatchedWSGIResponse as Response


def save(client: Client, text: str, draft: Draft | None = None, window: str = "one", **more: Any) -> Response:
    """What a page of that window sends while somebody types; the draft as that window last knew it."""
    known = {"draft": draft.pk, "draft_version": draft.version} if draft else {}
    data = {"text": text, "key": window, **known, **more}
    return client.post("/drafts/save", data, headers=fragment("draft-state"))


def passed(draft: Draft, since: timedelta = KEEP_EVERY) -> None:
    """Let so much time pass for what is kept of the draft."""
    draft.versions.update(saved_at=timezone.now() - since - timedelta(seconds=1))


def test_draft_save_updates_one_draft_and_counts_changes(people: People) -> None:
    client = browser(people.owner)
    headers = fragment("draft-state")
    answer = client.post("/drafts/save", {"text": "{"}, headers=headers)
    draft = Draft.objects.get()
    assert f'name="draft" value="{draft.pk}"' in seen(answer)
    client.post("/drafts/save", {"text": HELLO, "draft": draft.pk}, headers=headers)
    draft.refresh_from_db()
    assert (draft.text, draft.version, draft.name) == (HELLO, 2, "helloworld_16be675e")
    assert Draft.objects.count() == 1


def test_draft_of_empty_form_is_not_created(people: People) -> None:
    browser(people.owner).post("/drafts/save", {"text": " \n"})
    assert not Draft.objects.exists()


def test_draft_save_drops_null_characters(people: People) -> None:
    browser(people.owner).post("/drafts/save", {"text": "a\x00b"})
    assert Draft.objects.get().text == "ab"


def test_drafts_are_private_to_owner(people: People) -> None:
    draft = Draft.objects.create(owner=people.owner, name="hers", text="her text")
    assert "hers" in seen(browser(people.owner).get("/drafts/"))
    for user in (people.member, people.manager, people.stranger, people.admin):
        client = browser(user)
        assert "hers" not in seen(client.get("/drafts/"))
        client.post("/drafts/save", {"text": "overwritten", "draft": draft.pk})
        assert client.post(f"/drafts/{draft.pk}/delete").status_code == 404
    draft.refresh_from_db()
    assert draft.text == "her text"


def test_draft_delete_removes_draft(people: People) -> None:
    draft = Draft.objects.create(owner=people.owner)
    assert browser(people.owner).post(f"/drafts/{draft.pk}/delete")["Location"] == "/drafts/"
    assert not Draft.objects.exists()


def test_draft_list_when_empty_explains_autosave(people: People) -> None:
    assert "saved here automatically until you submit it" in seen(browser(people.owner).get("/drafts/"))


def test_drafts_require_sign_in(db: None) -> None:
    assert browser().get("/drafts/").status_code == 302
    assert browser().post("/drafts/save", {"text": "x"}).status_code == 302
    assert not Draft.objects.exists()


def test_draft_keeps_chosen_place(people: People) -> None:
    client = browser(people.owner)
    place = "vision/local/default"
    save(client, HELLO, place=place)
    draft = Draft.objects.get()
    assert client.get(f"/jobs/new?draft={draft.pk}").context["form"]["place"].value() == place


def test_draft_first_save_gives_page_its_address(people: People) -> None:
    client = browser(people.owner)
    first = save(client, "{")
    draft = Draft.objects.get()
    assert first["HX-Replace-Url"] == f"/jobs/new?draft={draft.pk}"
    assert "HX-Replace-Url" not in save(client, "{}", draft)


def test_draft_remembers_origin_job(people: People) -> None:
    client = browser(people.owner)
    client.post("/jobs/new", {"text": HELLO, "key": "k", "do": "submit"})
    job = Job.objects.get()
    save(client, HELLO, origin=job.public_id)
    assert Draft.objects.get().origin == job


def test_draft_version_is_stored_at_most_once_a_minute(people: People) -> None:
    client = browser(people.owner)
    save(client, "first")
    for text in ("second", "third"):
        save(client, text, Draft.objects.get())
    draft = Draft.objects.get()
    assert [version.text for version in draft.versions.all()] == ["first"]
    passed(draft)
    save(client, "fourth", draft)
    assert {version.text for version in draft.versions.all()} == {"first", "third"}


def test_draft_save_without_change_stores_no_version(people: People) -> None:
    client = browser(people.owner)
    save(client, "same")
    save(client, "same", Draft.objects.get(), window="two")
    assert not DraftVersion.objects.exists()


def test_draft_versions_over_limit_drop_oldest(people: People) -> None:
    draft = Draft.objects.create(owner=people.owner, text="now", version=500)
    long_ago = timezone.now() - timedelta(days=1)
    draft.versions.bulk_create(
        DraftVersion(draft=draft, number=number, text=str(number), saved_at=long_ago)
        for number in range(1, MOST_VERSIONS + 1)
    )
    save(browser(people.owner), "next", draft)
    kept = list(draft.versions.order_by("number").values_list("number", flat=True))
    assert kept == [*range(2, MOST_VERSIONS + 1), 500]


def test_draft_version_is_listed_opened_and_continued(people: People) -> None:
    client = browser(people.owner)
    save(client, "first")
    save(client, "second", Draft.objects.get())
    draft = Draft.objects.get()
    version = draft.versions.get()
    listed = seen(client.get(f"/drafts/{draft.pk}/versions"))
    assert f"/jobs/new?draft={draft.pk}&version={version.pk}" in listed
    assert "1 version" in seen(client.get("/drafts/"))
    opened = client.get(f"/jobs/new?draft={draft.pk}&version={version.pk}")
    assert opened.context["text"] == "first"
    assert "Draft version 1" in seen(opened)
    save(client, "first, changed", draft, window="another")
    assert {row.text for row in draft.versions.all()} == {"first", "second"}
    draft.refresh_from_db()
    assert draft.text == "first, changed"


def test_draft_version_of_another_draft_is_not_opened(people: People) -> None:
    mine = Draft.objects.create(owner=people.owner, text="mine")
    other = Draft.objects.create(owner=people.member, text="bob's own")
    version = other.versions.create(number=1, text="what bob had", saved_at=timezone.now())
    for asked in (version.pk, "x", "9" * 30):
        page = browser(people.owner).get(f"/jobs/new?draft={mine.pk}&version={asked}")
        assert page.context["text"] == "mine"


def test_draft_edited_in_second_window_keeps_both_texts(people: People) -> None:
    client = browser(people.owner)
    save(client, "begun")
    before = Draft.objects.get()
    save(client, "first window", before)
    for text in ("second", "second window"):
        told = seen(save(client, text, before, window="two"))
        assert "This draft was changed in another window" in told
        assert f'name="draft_version" value="{before.version}"' in told
    draft = Draft.objects.get()
    assert draft.text == "first window"
    assert [row.text for row in draft.versions.filter(beside=True)] == ["second window"]
    assert "Edited in another window, saved separately" in seen(client.get(f"/drafts/{draft.pk}/versions"))


def test_draft_taken_by_second_window_keeps_first_text_as_version(people: People) -> None:
    client = browser(people.owner)
    save(client, "begun")
    before = Draft.objects.get()
    save(client, "first window", before)
    save(client, "second window", before, window="two")
    told = seen(save(client, "second window", before, window="two", take="1"))
    assert "This draft was changed in another window" not in told
    draft = Draft.objects.get()
    assert draft.text == "second window"
    assert not draft.versions.filter(beside=True).exists()
    assert "first window" in {row.text for row in draft.versions.all()}
    assert "This draft was changed in another window" in seen(
        save(client, "first again", Draft(pk=draft.pk, version=2))
    )


def test_draft_submission_from_second_window_keeps_first_windows_draft(people: People) -> None:
    client = browser(people.owner)
    save(client, "begun")
    before = Draft.objects.get()
    save(client, "first window", before)
    save(client, HELLO, before, window="two")
    sent = {"draft": before.pk, "draft_version": before.version, "key": "two", "do": "submit"}
    client.post("/jobs/new", {"text": HELLO, **sent})
    assert Job.objects.count() == 1
    draft = Draft.objects.get()
    assert draft.text == "first window"
    assert not draft.versions.filter(beside=True).exists()


def test_draft_keeps_text_when_submission_key_was_used(people: People) -> None:
    client = browser(people.owner)
    client.post("/jobs/new", {"text": HELLO, "key": "k", "do": "submit"})
    changed = HELLO.replace("helloworld", "changed")
    assert client.post("/jobs/new", {"text": changed, "key": "k", "do": "submit"}).status_code == 409
    assert Draft.objects.get().text == changed


def test_draft_text_is_readable_only_by_owner(people: People) -> None:
    draft = Draft.objects.create(owner=people.owner, text="{}")
    answer = browser(people.owner).get(f"/drafts/{draft.pk}/file")
    assert (answer.content, answer["Content-Type"]) == (b"{}", "text/plain; charset=utf-8")
    others = (people.member, people.manager, people.stranger, people.admin)
    for user, page in itertools.product(others, ("file", "versions")):
        assert browser(user).get(f"/drafts/{draft.pk}/{page}").status_code == 404
