"""Home: mine, not everybody's; and how to begin."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from jobs.states import State
from quotas import ledger
from quotas.amounts import Amounts
from tests.factories import attempt_of, make_job, make_quota
from tests.jobs.web.conftest import People, browser, fragment, seen

Queries = Callable[..., AbstractContextManager[object]]


def test_home_shows_first_steps_to_a_new_user(people: People) -> None:
    text = seen(browser(people.owner).get("/"))
    assert "Your first job" in text
    assert "/start/helloworld" in text
    assert "You are an admin" not in text
    assert "You are an admin" in seen(browser(people.admin).get("/"))


def test_home_lists_own_running_and_ended_jobs_only(people: People) -> None:
    make_job(State.RUNNING, owner=people.owner, quota=people.quota, name="going")
    make_job(State.FAILED, owner=people.owner, quota=people.quota, name="over")
    make_job(State.RUNNING, owner=people.member, quota=people.quota, name="bobs")
    response = browser(people.owner).get("/")
    assert [job.name for job in response.context["going"]] == ["going"]
    assert [job.name for job in response.context["ended"]] == ["over"]
    assert "Your first job" not in seen(response)


def test_home_shows_used_gpus_of_each_quota(people: People) -> None:
    people.quota.gpus = 4
    people.quota.save()
    job = make_job(State.RUNNING, owner=people.member, quota=people.quota)
    parts = [ledger.Part(1, Amounts(1000, 1024, {"TITANX": 3}))]
    request = ledger.ask(
        attempt_of(job).key, quota=job.quota, owner=job.owner, parts=parts, priority=1, declared_s=None
    )
    ledger.reserve(request, [])
    assert "<b>3</b> / 4" in seen(browser(people.owner).get("/"))
    assert "<b>3</b> / 4" not in seen(browser(people.stranger).get("/"))


def test_home_fragment_contains_the_jobs(people: People) -> None:
    make_job(State.RUNNING, owner=people.owner, quota=people.quota)
    text = seen(browser(people.owner).get("/", headers=fragment("home-jobs")))
    assert text.startswith('<div id="home-jobs"')


def test_home_query_count_stays_fixed(people: People, django_assert_max_num_queries: Queries) -> None:
    for _each in range(4):
        quota = make_quota(people.quota.workspace)
        make_job(State.RUNNING, owner=people.owner, quota=quota)
        make_job(State.FAILED, owner=people.owner, quota=quota)
    client = browser(people.owner)
    client.get("/")
    with django_assert_max_num_queries(16):
        client.get("/")


def test_home_without_sign_in_redirects_to_sign_in(db: None) -> None:
    assert browser().get("/")["Location"] == "/sign-in?next=/"
