"""Results and curves on the job's page, in a comparison and over the API, for those who may read the job."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from jobs.models import Job, LogStream, TrainingSeries
from jobs.states import State
from jobs.training_metrics import results, series
from jobs.training_metrics.output import Sample
from quotas.models import User
from tests.factories import make_job
from tests.jobs.web.conftest import People, browser, fragment, people, seen

__all__ = ["people"]


def trained(people: People, *losses: float, name: str = "loss", state: State = State.SUCCEEDED) -> Job:
    """A job of the owner that printed these values."""
    job = make_job(state, owner=people.owner, quota=people.quota)
    add(job, *losses, name=name)
    return job


def add(job: Job, *values: float, name: str = "loss") -> None:
    stream = LogStream.objects.select_related("attempt").get(attempt__job=job)
    begin = TrainingSeries.objects.filter(job=job, name=name).values_list("count", flat=True).first() or 0
    series.append(
        series.Origin.of_log(stream),
        [Sample(name, "step", at, value) for at, value in enumerate(values, begin)],
    )


@pytest.mark.parametrize(
    ("name", "goal"),
    [
        ("loss", "min"),
        ("val_loss", "min"),
        ("train/Loss", "min"),
        ("val_acc", "max"),
        ("Acc@1", "max"),
        ("lr", ""),
    ],
)
def test_name_of_a_metric_tells_what_is_best(name: str, goal: str) -> None:
    assert results.goal_of(name) == goal


def test_metrics_tab_shows_results_and_one_chart_for_training_and_validation(people: People) -> None:
    job = trained(people, 0.9, 0.25, 0.5)
    add(job, 0.75, name="val_loss")
    add(job, 0.001, name="lr")
    response = browser(people.owner).get(f"/jobs/{job.public_id}/?tab=metrics")
    first = response.context["training"].results[0]
    assert (first.last, first.last_step, first.best, first.best_step) == (0.5, 2, 0.25, 1)
    charts = response.context["training"].charts
    assert [(chart.title, chart.axis) for chart in charts] == [("loss", "step"), ("lr", "step")]
    assert [curve["label"] for curve in json.loads(charts[0].data)] == ["loss", "val_loss"]
    assert "every 5s" not in seen(response)


def test_running_job_fetches_its_curves_alone(
    people: People, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    job = trained(people, 0.5, state=State.RUNNING)
    client, address = browser(people.owner), f"/jobs/{job.public_id}/?tab=metrics"
    assert "every 5s" in seen(client.get(address))
    counts = []
    for number in range(2):
        add(job, 0.5, name=f"m{number}")
        with django_assert_num_queries(9):
            told = seen(client.get(address, headers=fragment("training-metrics")))
        counts.append(told.count("data-training-curves"))
        assert "<h1" not in told
    assert counts == [2, 3]


@pytest.mark.parametrize(
    ("who", "status"), [("owner", 200), ("admin", 200), ("member", 403), ("stranger", 404)]
)
def test_training_metrics_are_for_those_who_may_read_the_job(people: People, who: str, status: int) -> None:
    job = trained(people, 0.9, 0.25)
    client = browser(getattr(people, who))
    answer = client.get(f"/api/console/v1/jobs/{job.public_id}/training-metrics")
    assert answer.status_code == status
    if status == 200:
        (metric,) = answer.json()["metrics"]
        assert (metric["name"], metric["goal"], metric["best"], metric["count"]) == ("loss", "min", 0.25, 2)
        assert metric["points"] == [[0, 0.9, 0.9, 0.9], [1, 0.25, 0.25, 0.25]]
    told = seen(client.get(f"/jobs/{job.public_id}/?tab=metrics"))
    assert ("data-training-curves" in told) is (status == 200)


def compared(user: User, *jobs: Job) -> Any:
    return browser(user).get("/jobs/compare", {"id": [job.public_id for job in jobs]})


def test_comparison_overlays_common_metrics_and_marks_the_best(people: People) -> None:
    jobs = [trained(people, 0.9, 0.5), trained(people, 0.9, 0.25, 0.75), trained(people, 1, name="acc")]
    response = compared(people.owner, *jobs)
    rows = {row.name: row.cells for row in response.context["results"]}
    assert [cell.is_best for cell in rows["loss"]] == [False, True, False]
    assert [cell.result is not None for cell in rows["acc"]] == [False, False, True]
    (chart,) = response.context["charts"]
    assert [len(curve["points"]) for curve in json.loads(chart.data)] == [2, 3]
    assert "results" not in compared(people.member, *jobs).context


def test_merged_points_are_drawn_with_their_extremes() -> None:
    points = results._points([[1, 5, 5, 5], [4, 2, 0, 9]])
    assert points == [(1, 5), (2, 0), (3, 9), (4, 2)]
