"""The median rule of a sweep: who is stopped, when, and what the event says."""

from __future__ import annotations

import pytest

from jobs.messages.events import event_message
from jobs.models import Event, Job, Sweep, SweepRun
from jobs.scheduling import early_stop
from jobs.scheduling.observations import intended_reason
from jobs.states import EndKind, ReasonCode, State
from tests.factories import attempt_of, make_job
from tests.jobs.training_metrics.test_results import add

pytestmark = pytest.mark.django_db


def make_sweep(curves: dict[str, list[float]], goal: str = "min") -> dict[str, Job]:
    """Running jobs with such values of the objective, of which the rule compares three after step 2."""
    jobs = {}
    sweep: Sweep | None = None
    for number, (name, values) in enumerate(curves.items(), 1):
        job = jobs[name] = make_job(State.RUNNING)
        sweep = sweep or Sweep.objects.create(
            name="train",
            owner=job.owner,
            workspace=job.workspace,
            at_once=9,
            objective="cost",
            goal=goal,
            stop_after=2,
            stop_jobs=3,
        )
        SweepRun.objects.create(sweep=sweep, job=job, number=number)
        if values:
            add(job, *values, name="cost")
    return jobs


def stopped(jobs: dict[str, Job]) -> list[str]:
    return [name for name, job in jobs.items() if attempt_of(job).end_kind == EndKind.EARLY_STOP]


def test_job_worse_than_the_median_of_the_others_is_stopped_with_the_evidence() -> None:
    jobs = make_sweep({"a": [9, 5, 1], "b": [9, 6, 2], "c": [9, 7, 3], "worst": [9], "new": [99, 98]})
    early_stop.judge_sweeps()
    assert stopped(jobs) == [], "each of a, b and c is compared with two others"
    for name in ("a", "b", "c"):
        add(jobs[name], 4, 4, name="cost")
    add(jobs["worst"], 8, 8, 8, name="cost")
    early_stop.judge_sweeps()
    assert stopped(jobs) == [], "the sweep was judged a moment ago"
    Sweep.objects.update(judged_at=None)
    early_stop.judge_sweeps()
    assert stopped(jobs) == ["worst"]
    event = Event.objects.get(job=jobs["worst"], kind=Event.Kind.END_WANTED)
    text, detail = event_message(Event.Kind.END_WANTED, event.params)
    assert text == "Stopped early by the median rule of its sweep"
    assert detail == "best cost by step 3: 8; median of 3 other jobs: 2"
    assert intended_reason(attempt_of(jobs["worst"])).code is ReasonCode.EARLY_STOP


@pytest.mark.parametrize(("goal", "found"), [("max", ["d"]), ("min", ["a"])])
def test_early_stop_follows_the_goal_and_stops_nobody_twice(goal: str, found: list[str]) -> None:
    curves = {"a": [9.0, 9, 9], "b": [5.0, 5, 5], "c": [5.0, 5, 5], "d": [1.0, 1, 1]}
    jobs = make_sweep(curves, goal)
    for _again in range(2):
        Sweep.objects.update(judged_at=None)
        early_stop.judge_sweeps()
    assert stopped(jobs) == found
    assert Event.objects.filter(kind=Event.Kind.END_WANTED).count() == 1
