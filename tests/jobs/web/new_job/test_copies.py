"""The next free name, and a file that can no longer be read."""

from __future__ import annotations

import json

import pytest

from jobs import dialects, submission
from jobs.dialects.document import Document
from jobs.models import Job, JobFile, Replica
from jobs.states import State
from jobs.submission import templates
from jobs.web.new_job.copies import LONGEST_NAME, copy_job, free_name
from tests.factories import TEMPLATE_FILE, make_job, make_template, replica_of
from tests.jobs.web.conftest import People, browser, seen
from tests.jobs.web.test_new import JUPYTER


@pytest.mark.parametrize(
    ("taken", "name", "free"),
    [
        ([], "train", "train-2"),
        (["train-2", "train-3"], "train", "train-4"),
        (["train-2", "train-9"], "train-2", "train-10"),
        (["train-wide-7"], "train", "train-2"),
        (["train-007"], "train", "train-2"),
        ([], "helloworld_16be675e", "helloworld_16be675e-2"),
        ([], "-5", "-5-2"),
    ],
)
def test_free_name_follows_highest_own_number(people: People, taken: list[str], name: str, free: str) -> None:
    for each in taken:
        make_job(owner=people.owner, quota=people.quota, name=each)
    make_job(owner=people.member, quota=people.quota, name="train-50")
    assert free_name(people.owner, name) == free


def test_free_name_of_full_length_still_gets_number(people: People) -> None:
    name = "n" * LONGEST_NAME
    found = free_name(people.owner, name)
    assert len(found) <= LONGEST_NAME
    assert found.endswith("-2")


@pytest.mark.parametrize("dialect", dialects.NAMES)
def test_copy_cursor_is_in_command_in_every_dialect(people: People, dialect: str) -> None:
    text = dialects.convert(Document(JUPYTER), dialect).document.text
    copy = copy_job(
        people.owner, make_job(owner=people.owner, quota=people.quota, text=text, dialect=dialect)
    )
    assert copy.cursor is not None
    line, column = copy.cursor
    rest = copy.document.text.splitlines()[line - 1][column - 1 :]
    assert rest.startswith("jupyter notebook")


def test_copy_of_unreadable_file_keeps_text(people: People) -> None:
    job = make_job(owner=people.owner, quota=people.quota, text="{ broken", dialect="openpai-v1")
    assert copy_job(people.owner, job).document.text == "{ broken"


def test_copy_with_code_branch_offers_same_or_newest_commit(people: People) -> None:
    code = {"CodeSourceId": "code-1", "Branch": "main", "Commit": "a" * 40}
    text = json.dumps({**json.loads(TEMPLATE_FILE), "CodeSource": code})
    job = make_job(owner=people.owner, quota=people.quota, text=text, dialect="dlc")
    client = browser(people.owner)
    page = client.get("/jobs/new", {"like": job.public_id})
    assert "Same commit, aaaaaaaaaa" in seen(page)
    assert "a" * 40 in page.context["text"]
    page = client.get("/jobs/new", {"like": job.public_id, "code": "newest"})
    assert "a" * 40 not in page.context["text"]
    assert '"Branch": "main"' in page.context["text"]
    bare = {**json.loads(TEMPLATE_FILE), "CodeSource": {"CodeSourceId": "code-1", "Branch": "main"}}
    ran = make_job(
        State.SUCCEEDED, owner=people.owner, quota=people.quota, text=json.dumps(bare), dialect="dlc"
    )
    assert client.get("/jobs/new", {"like": ran.public_id}).context["code"] is None
    Replica.objects.filter(pk=replica_of(ran).pk).update(commit="b" * 40)
    page = client.get("/jobs/new", {"like": ran.public_id})
    assert (page.context["code"].newest, "b" * 40 in page.context["text"]) == (True, False)
    page = client.get("/jobs/new", {"like": ran.public_id, "code": "same"})
    assert (page.context["code"].newest, "b" * 40 in page.context["text"]) == (False, True)
    assert "bbbbbbbbbbbb" in seen(client.get(f"/jobs/{ran.public_id}/"))
    assert client.post(f"/jobs/{ran.public_id}/retry").status_code == 302
    again_as_it_was = JobFile.objects.get(job=Job.objects.latest("pk"))
    assert again_as_it_was.spec.code is not None
    assert again_as_it_was.spec.code.commit == "b" * 40
    locks = make_template(people.owner, text=json.dumps(bare), constraints={"/code/commit": "locked"})
    chosen = templates.find(people.owner, locks.public_id)
    assert chosen is not None
    templates.note_use(ran, chosen)
    assert submission.retry(people.owner, ran, second_copy=True).job.origin == ran, (
        "its template keeps the branch open"
    )
    plain = make_job(owner=people.owner, quota=people.quota, text=TEMPLATE_FILE, dialect="dlc")
    assert client.get("/jobs/new", {"like": plain.public_id}).context["code"] is None
