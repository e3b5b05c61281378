"""Clones as a history: who sees which part, what each step changed, and the difference while one edits."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse
from django.utils.timezone import now

from jobs.models import Job
from jobs.spec import RoleSpec
from jobs.states import State
from jobs.submission import lineage as history
from tests.factories import TEMPLATE_FILE, make_job, make_quota, make_spec
from tests.jobs.web.conftest import People, browser, fragment, seen

pytestmark = pytest.mark.django_db


def clone(people: People, origin: Job | None, command: str, **columns: Any) -> Job:
    spec = make_spec(name=command, roles=(RoleSpec(name="main", command=command),))
    columns = {"owner": people.owner, "quota": people.quota, **columns}
    return make_job(State.SUCCEEDED, spec=spec, origin=origin, **columns)


@pytest.fixture
def chain(people: People) -> list[Job]:
    """Three jobs, each made from the one before."""
    first = clone(people, None, "train --lr 0.1")
    second = clone(people, first, "train --lr 0.01")
    return [first, second, clone(people, second, "train --lr 0.01 --epochs 3")]


def page(people: People, job: Job, who: str = "owner", **asked: str) -> str:
    return seen(browser(getattr(people, who)).get(reverse("job_history", args=[job.public_id]), asked))


@pytest.mark.parametrize(
    ("who", "status"), [("owner", 200), ("manager", 200), ("admin", 200), ("member", 403), ("stranger", 404)]
)
def test_history_is_limited_to_readers_of_job(
    people: People, chain: list[Job], who: str, status: int
) -> None:
    client = browser(getattr(people, who))
    assert client.get(reverse("job_history", args=[chain[0].public_id])).status_code == status


def test_history_step_shows_changes_and_result(people: People, chain: list[Job]) -> None:
    told = page(people, chain[2])
    for line in (
        "--lr 0.1 → 0.01 (Start command)",
        "Start command: --epochs 3, was empty",
        "Original job",
    ):
        assert line in told
    assert told.count("Succeeded") >= 3
    told = page(people, chain[0])
    assert "--lr 0.1 → 0.01" in told.partition("Derived jobs")[2]
    told = seen(browser(people.owner).get(f"/jobs/{chain[1].public_id}/"))
    assert "--lr 0.1 → 0.01 (Start command)" in told
    assert reverse("job_history", args=[chain[1].public_id]) in told


def test_history_hides_unreadable_changes_and_stops_at_invisible_job(people: People) -> None:
    elsewhere = make_quota()
    hidden = clone(people, None, "secret-start", quota=elsewhere, owner=people.stranger)
    theirs = clone(people, hidden, "their-step", owner=people.member)
    mine = clone(people, theirs, "my-step")
    told = page(people, mine)
    assert "No permission to view the changes." in told
    assert "a job that you can't access" in told
    assert "secret-start" not in told
    assert "their-step" in told  # its name is listed in the workspace; what it runs is not told
    assert "their-step → my-step" not in told
    assert "their-step → my-step" in page(people, mine, "manager")


def test_history_passes_over_deleted_job(people: People, chain: list[Job]) -> None:
    Job.objects.filter(pk=chain[1].pk).update(deleted_at=now())
    told = page(people, chain[2])
    assert "Deleted job." in told
    assert "train --lr 0.01 <" not in told
    assert "Original job" in told


def test_history_of_long_chain_continues_on_next_page(
    people: People, chain: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MOST", 2)
    told = page(people, chain[2])
    assert "train --lr 0.1 and earlier jobs" in told
    assert "Original job" not in told
    made = [clone(people, chain[2], f"try {number}") for number in range(3)]
    told = page(people, chain[2])
    assert (made[2].name in told, made[1].name in told, made[0].name in told) == (True, True, False)
    told = page(people, chain[2], before=made[1].public_id)
    assert (made[1].name in told, made[0].name in told) == (False, True)


# --- while it is edited ----------------------------------------------------------------------------------


@pytest.fixture
def job(people: People) -> Job:
    return make_job(
        State.SUCCEEDED,
        owner=people.owner,
        quota=people.quota,
        text=TEMPLATE_FILE,
        dialect="dlc",
        name="train",
    )


def test_job_difference_is_shown_at_start_and_follows_text(people: People, job: Job) -> None:
    client = browser(people.owner)
    told = seen(client.get(reverse("job_new"), {"like": job.public_id}))
    assert "Only the name differs from train." in told
    sent = {"origin": job.public_id, "text": TEMPLATE_FILE.replace('"0.1"', '"0.5"'), "dialect": ""}
    answer = client.post(reverse("job_difference"), sent, headers=fragment("job-difference"))
    assert "Environment variable LR: 0.1 → 0.5" in seen(answer)
    assert '"LR": "0.5"' in seen(answer)
    assert "<h1" not in answer.content.decode()
    answer = client.post(reverse("job_difference"), {**sent, "text": "{"})
    assert "The text can't be parsed" in seen(answer)
    answer = client.post(reverse("job_new"), {**sent, "do": "check", "key": "k"})
    assert "Environment variable LR: 0.1 → 0.5" in seen(answer)


@pytest.mark.parametrize("who", ["member", "stranger"])
def test_job_difference_hides_unreadable_original(people: People, job: Job, who: str) -> None:
    client = browser(getattr(people, who))
    sent = {"origin": job.public_id, "text": "{}", "dialect": "dlc"}
    told = seen(client.post(reverse("job_difference"), sent))
    assert "Original job not found, or no permission." in told
    assert "--lr $LR" not in told
    assert "--lr $LR" not in seen(client.post(reverse("job_new"), {**sent, "do": "check", "key": "k"}))
