"""The pages of sweeps: what each kind of person sees and may do, and what differs between two jobs."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from jobs.fault_tolerance.decisions import Fault
from jobs.fault_tolerance.error_catalogue import Origin
from jobs.live import bus
from jobs.models import Attempt, Job, JobFile, Sweep, SweepRun
from jobs.spec import RoleSpec
from jobs.states import State
from jobs.web import sweeps
from tests.factories import TEMPLATE_FILE, make_job, make_spec
from tests.jobs.training_metrics.test_results import add
from tests.jobs.web.conftest import People, browser, fragment, seen
from tests.jobs.web.test_job_list import Queries

pytestmark = pytest.mark.django_db

VALUES = ("0.1", "0.01", "0.001")
STATES = (State.SUCCEEDED, State.FAILED, State.QUEUED)


def make_sweep(people: People, name: str = "train", values: tuple[str, ...] = VALUES) -> Sweep:
    """A sweep over env.LR, of which one job succeeded, one failed, and one waits for its turn."""
    made = Sweep.objects.create(
        name=name, owner=people.owner, workspace=people.quota.workspace, names=["env.LR"], at_once=1
    )
    for number, value in enumerate(values, 1):
        role = RoleSpec(name="main", command="train")
        spec = make_spec(name=f"{name}-{number}", roles=(role,), env={"LR": value})
        state = STATES[(number - 1) % len(STATES)]
        text = TEMPLATE_FILE.replace("0.1", value).replace("train", spec.name, 1)
        place: dict[str, Any] = {"owner": people.owner, "quota": people.quota}
        job = make_job(state, spec=spec, text=text, dialect="dlc", **place)
        SweepRun.objects.create(
            sweep=made, job=job, number=number, values={"env.LR": value}, waits=state is State.QUEUED
        )
    return made


@pytest.fixture
def sweep(people: People) -> Sweep:
    return make_sweep(people)


def address(sweep: Sweep, name: str = "sweep") -> str:
    return reverse(name, args=[sweep.public_id])


EVERYBODY = [
    ("owner", 200, True),
    ("manager", 200, True),
    ("admin", 200, True),
    ("member", 200, False),
    ("stranger", 404, False),
]


@pytest.mark.parametrize(("who", "status", "reads"), EVERYBODY)
def test_sweep_page_shows_jobs_and_values_per_role(
    people: People, sweep: Sweep, who: str, status: int, reads: bool
) -> None:
    client = browser(getattr(people, who))
    response = client.get(address(sweep))
    assert response.status_code == status
    told = seen(response)
    assert ("train-2" in told, "0.001" in told, "Stop all" in told) == (status == 200, reads, reads)
    assert ("Rerun 1 failed job" in told) == reads
    listed = seen(client.get(reverse("sweeps")))
    assert (sweep.public_id in listed) == (status == 200)


@pytest.mark.parametrize("name", ["sweeps", "sweep", "sweep_stop", "sweep_again", "sweep_change"])
def test_sweep_pages_require_sign_in(sweep: Sweep, name: str) -> None:
    there = reverse(name) if name == "sweeps" else address(sweep, name)
    method = browser().get if name in {"sweeps", "sweep"} else browser().post
    response = method(there)
    assert response.status_code == 302
    assert response["Location"].startswith("/sign-in")


@pytest.mark.parametrize("name", ["sweep_stop", "sweep_again", "sweep_change"])
@pytest.mark.parametrize(("who", "status"), [("member", 403), ("stranger", 404)])
def test_sweep_action_by_unauthorized_user_changes_nothing(
    people: People, sweep: Sweep, name: str, who: str, status: int
) -> None:
    assert browser(getattr(people, who)).post(address(sweep, name), {"at_once": 3}).status_code == status
    sweep.refresh_from_db()
    assert (sweep.at_once, Job.objects.count()) == (1, 3)
    assert Job.objects.filter(state=State.QUEUED).count() == 1


@pytest.mark.parametrize("who", ["owner", "manager", "admin"])
def test_sweep_stop_stops_all_its_jobs(people: People, sweep: Sweep, who: str) -> None:
    response = browser(getattr(people, who)).post(address(sweep, "sweep_stop"), follow=True)
    assert "Stopping 1 job." in seen(response)
    assert not Job.objects.filter(state=State.QUEUED).exists()
    assert "All jobs ended" in seen(response)
    assert "Stop all" not in seen(response)


def test_sweep_concurrency_is_changed_within_limits(people: People, sweep: Sweep) -> None:
    client = browser(people.owner)
    assert "At most 2 jobs can run at once." in seen(
        client.post(address(sweep, "sweep_change"), {"at_once": 2}, follow=True)
    )
    for wrong in ("0", "201", "", "x"):
        client.post(address(sweep, "sweep_change"), {"at_once": wrong})
    sweep.refresh_from_db()
    assert sweep.at_once == 2
    assert not SweepRun.objects.filter(waits=True).exists()


def test_sweep_rerun_of_unreadable_job_file_shows_message(people: People, sweep: Sweep) -> None:
    JobFile.objects.filter(job__state=State.FAILED).update(text="{")
    response = browser(people.owner).post(address(sweep, "sweep_again"), follow=True)
    assert response.status_code == 200
    assert response.context["messages"]
    assert Job.objects.count() == 3


def test_comparison_of_all_jobs_of_a_sweep_shows_their_values(people: People, sweep: Sweep) -> None:
    page = seen(browser(people.owner).get(address(sweep)))
    ids = [run.job.public_id for run in sweep.runs.order_by("number")]
    assert all(f'value="{each}"' in page for each in ids)
    told = seen(browser(people.owner).get("/jobs/compare", {"id": ids}))
    values = [told.index(f">{each}<") for each in ("0.1", "0.01", "0.001")]
    assert values == sorted(values)


def test_sweep_jobs_fragment_preserves_ticked_jobs(people: People, sweep: Sweep) -> None:
    ticked = sweep.runs.get(number=2).job.public_id
    response = browser(people.owner).get(address(sweep), {"id": ticked}, headers=fragment("sweep-jobs"))
    told = seen(response)
    assert "<h1" not in told
    assert told.count("checked") == 1
    for run in sweep.runs.all():
        assert bus.job_name(run.job.public_id) in told.partition("data-live=")[2].partition(">")[0]


def test_deleted_job_of_a_sweep_is_not_linked(people: People, sweep: Sweep) -> None:
    run = sweep.runs.get(number=1)
    Job.objects.filter(pk=run.job_id).update(deleted_at=run.job.created_at)
    told = seen(browser(people.owner).get(address(sweep)))
    assert f'href="/jobs/{run.job.public_id}/"' not in told
    assert f'value="{run.job.public_id}"' not in told


def test_sweep_without_jobs_shows_no_jobs_left(people: People, sweep: Sweep) -> None:
    sweep.runs.all().delete()
    assert "No jobs left" in seen(browser(people.owner).get(address(sweep)))


def test_sweep_summary_counts_the_last_round_only(people: People, sweep: Sweep) -> None:
    job = make_job(State.SUCCEEDED, owner=people.owner, quota=people.quota, name="anew")
    SweepRun.objects.create(sweep=sweep, job=job, number=2, round=2, values={"env.LR": "0.01"})
    told = seen(browser(people.owner).get(address(sweep)))
    assert "round 2" in told
    assert "Failed: 1" not in told
    assert "Succeeded: 2" in told
    assert "Succeeded: 2" in seen(browser(people.owner).get(reverse("sweeps")))


def test_job_page_links_to_its_sweep(people: People, sweep: Sweep) -> None:
    job = sweep.runs.get(number=1).job
    told = seen(browser(people.owner).get(f"/jobs/{job.public_id}/"))
    assert f'href="{address(sweep)}"' in told
    alone = make_job(owner=people.owner, quota=people.quota)
    assert "Sweep" not in seen(browser(people.owner).get(f"/jobs/{alone.public_id}/"))


@pytest.mark.parametrize(("who", "count"), [("owner", 3), ("member", 3), ("admin", 3), ("stranger", 0)])
def test_job_list_with_sweep_filter_shows_only_its_jobs(
    people: People, sweep: Sweep, who: str, count: int
) -> None:
    make_job(owner=people.owner, quota=people.quota, name="alone")
    response = browser(getattr(people, who)).get("/jobs/", {"sweep": sweep.public_id})
    assert len(response.context["jobs"]) == count
    assert "alone" not in seen(response)
    assert "This sweep only" in seen(response)
    failed = browser(people.owner).get("/jobs/", {"sweep": sweep.public_id, "state": "failed"})
    assert [job.name for job in failed.context["jobs"]] == ["train-2"]


def test_sweep_list_without_sweeps_shows_empty_state(people: People) -> None:
    told = seen(browser(people.owner).get(reverse("sweeps")))
    assert "No sweeps yet" in told
    assert f'href="{reverse("sweeps")}"' in seen(browser(people.owner).get("/jobs/"))


def test_sweep_list_pages_continue_without_gap(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "PAGE", 2)
    for name in ("a", "b", "c"):
        make_sweep(people, name, ("1",))
    client = browser(people.owner)
    first = client.get(reverse("sweeps"))
    assert [sweep.name for sweep, _ in first.context["rows"]] == ["c", "b"]
    second = client.get(first.context["next_url"])
    assert [sweep.name for sweep, _ in second.context["rows"]] == ["a"]
    assert (second.context["next_url"], second.context["previous_url"]) == ("", reverse("sweeps"))


@pytest.mark.parametrize("count", [1, 30])
def test_sweep_pages_query_count_does_not_grow(
    people: People, count: int, django_assert_max_num_queries: Queries
) -> None:
    sweep = make_sweep(people, values=tuple(str(number) for number in range(count)))
    for number in range(count):
        make_sweep(people, f"other{number}", ("1",))
    client = browser(people.owner)
    with django_assert_max_num_queries(15):
        client.get(address(sweep))
    with django_assert_max_num_queries(10):
        client.get(reverse("sweeps"))


FAULT = Fault("exit_code", Origin.OWN, "KeyError: 'loss_2'", "main", 0)


def test_sweep_table_marks_the_best_sorts_by_results_and_hides_them_from_members(people: People) -> None:
    found = make_sweep(people)
    Sweep.objects.update(objective="cost", goal="max")
    first, second, third = (run.job for run in found.runs.order_by("number"))
    add(first, 1.0, 3.0, 2.0, name="cost")
    add(second, 0.5, name="cost")
    add(second, 0.25, name="lr")
    Attempt.objects.filter(job=second).update(fault=FAULT.to_json())
    Job.objects.filter(pk=second.pk).update(reason_code="exit_code")
    client = browser(people.owner)
    page = client.get(address(found), {"sort": "-best0", "metric": ["lr"]})
    told = seen(page)
    assert [trial.run.job for trial, _values, _cells in page.context["rows"]] == [first, second, third]
    assert [cells for _trial, _values, cells in page.context["rows"]] == [
        [3, 2, None, None],
        [0.5, 0.5, None, 0.25],
        [None] * 4,
    ]
    assert "KeyError: 'loss_2'" in told
    assert f'href="/jobs/new?like={first.public_id}"' in told
    assert told.count(">best<") == 1
    orders = {
        sort: [
            trial.run.number
            for trial, _values, _cells in client.get(address(found), {"sort": sort}).context["rows"]
        ]
        for sort in ("last0", "value0", "-number", "nonsense")
    }
    assert orders == {"last0": [2, 1, 3], "value0": [3, 2, 1], "-number": [3, 2, 1], "nonsense": [1, 2, 3]}
    member = browser(people.member).get(address(found), {"metric": ["lr"], "sort": "best0"})
    assert [cells for _trial, _values, cells in member.context["rows"]] == [[], [], []]
    assert ">best<" not in seen(member)
