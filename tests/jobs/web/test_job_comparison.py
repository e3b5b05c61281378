"""The comparison of several jobs, reached from the list of jobs and from a sweep."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.models import Job
from jobs.spec import JobSpec, RoleSpec
from jobs.states import State
from quotas.models import User
from tests.factories import make_job
from tests.jobs.web.conftest import People, browser, seen


def spec(name: str, command: str, replicas: int = 1) -> JobSpec:
    return JobSpec(name=name, roles=(RoleSpec(name="worker", command=command, replicas=replicas),))


@pytest.fixture
def three(people: People) -> list[Job]:
    """Jobs of the owner that differ in an option, or in their replicas."""
    place: dict[str, Any] = {"owner": people.owner, "quota": people.quota}
    return [
        make_job(State.FAILED, name="a", spec=spec("a", "python train.py --lr 0.1"), **place),
        make_job(State.SUCCEEDED, name="b", spec=spec("b", "python train.py --lr 0.01"), **place),
        make_job(State.SUCCEEDED, name="c", spec=spec("c", "python train.py --lr 0.1", 4), **place),
    ]


def rows(user: User, jobs: list[Job]) -> dict[tuple[str, str], tuple[str, ...]]:
    response = browser(user).get("/jobs/compare", {"id": [job.public_id for job in jobs]})
    return {(row.what, row.field): row.values for row in response.context.get("rows", ())}


def test_comparison_has_a_row_for_each_field_that_differs(people: People, three: list[Job]) -> None:
    found = rows(people.owner, three)
    by_option = {what: values for (what, _field), values in found.items()}
    assert by_option["--lr"] == ("0.1", "0.01", "0.1")
    assert by_option[""] == ("1", "1", "4")
    assert len(found) == 2


def test_comparison_shows_no_words_of_a_command_for_a_job_that_lacks_them(people: People) -> None:
    place: dict[str, Any] = {"owner": people.owner, "quota": people.quota}
    commands = ("echo one two; sleep 5", "echo one 2; sleep 5", "python train.py")
    jobs = [make_job(State.FAILED, spec=spec("a", command), **place) for command in commands]
    assert list(rows(people.owner, jobs).values()) == [commands]


def test_comparison_keeps_the_order_in_which_jobs_were_selected(people: People, three: list[Job]) -> None:
    found = rows(people.owner, three[::-1])
    assert ("0.1", "0.01", "0.1") in found.values()
    assert ("4", "1", "1") in found.values()


def test_comparison_of_two_jobs_shows_the_lines_of_their_files(people: People) -> None:
    texts = ('{"jobName": "a",\n "n": 1}', '{"jobName": "a",\n "n": 2}')
    place: dict[str, Any] = {"owner": people.owner, "quota": people.quota, "dialect": "openpai-v1"}
    jobs = [make_job(State.FAILED, text=text, **place) for text in texts]
    told = seen(browser(people.owner).get("/jobs/compare", {"id": [job.public_id for job in jobs]}))
    assert "Line by line" in told
    assert told.count("line-new") == 1


@pytest.mark.parametrize(("who", "is_shown"), [("owner", True), ("admin", True), ("member", False)])
def test_comparison_leaves_out_jobs_that_cannot_be_read(
    people: People, three: list[Job], who: str, is_shown: bool
) -> None:
    response = browser(getattr(people, who)).get("/jobs/compare", {"id": [job.public_id for job in three]})
    told = seen(response)
    assert ("0.01" in told) is is_shown
    assert ("Some jobs are left out" in told) is not is_shown
    assert ("Select two jobs to compare" in told) is not is_shown


def test_stranger_learns_nothing_from_a_comparison(people: People, three: list[Job]) -> None:
    told = seen(browser(people.stranger).get("/jobs/compare", {"id": [job.public_id for job in three]}))
    assert all(f">{job.name}</a>" not in told for job in three)


def test_comparison_says_that_it_has_a_limit(people: People) -> None:
    place: dict[str, Any] = {"owner": people.owner, "quota": people.quota}
    ids = [make_job(State.FAILED, **place).public_id for _each in range(11)]
    response = browser(people.owner).get("/jobs/compare", {"id": ids})
    assert len(response.context["jobs"]) == 10
    assert "Only the first 10 jobs are compared" in seen(response)


def test_comparison_query_count_does_not_grow_with_jobs(
    people: People, three: list[Job], django_assert_num_queries: Any
) -> None:
    client = browser(people.owner)
    client.get("/jobs/compare")
    for jobs in (three, [*three, make_job(State.FAILED, owner=people.owner, quota=people.quota)]):
        with django_assert_num_queries(13):
            client.get("/jobs/compare", {"id": [job.public_id for job in jobs]})


def test_list_of_jobs_leads_to_the_comparison(people: People, three: list[Job]) -> None:
    ids = [job.public_id for job in three]
    response = browser(people.owner).post("/jobs/several", {"act": "compare", "id": ids}, follow=True)
    assert response.redirect_chain[0][0].startswith("/jobs/compare?id=")
    assert len(response.context["jobs"]) == 3
