"""Sweeps: what they expand to, that all are accepted or none, how many run at once, what is done to all."""

from __future__ import annotations

from typing import Any

import pytest

from jobs import messages, submission
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.lifecycle import pending_reasons, transitions
from jobs.models import Job, JobFile, Sweep, SweepRun
from jobs.scheduling import reconcile
from jobs.states import Reason, ReasonCode, State
from jobs.submission import Conflict, Forbidden, dependencies
from jobs.submission.sweeps import commands
from jobs.submission.sweeps.commands import SweepRequest
from jobs.submission.sweeps.expansion import CannotSweepError, combinations, expand
from quotas.models import Membership, Role, User
from tests.jobs.conftest import Place, attempt_of, spec
from tests.jobs.engine import MemoryEngine

pytestmark = pytest.mark.django_db

TEXT = """{
  // one file for all
  "DisplayName": "lr",
  "JobType": "PyTorchJob",
  "JobSpecs": [{"Type": "Worker", "Image": "i", "PodCount": 1, "ResourceConfig": {"CPU": "1"}}],
  "UserCommand": "train --lr={lr}",
  "Envs": {"SEED": "1"}
}"""


@pytest.fixture(autouse=True)
def _engine(engine: MemoryEngine) -> None:
    """Every test has an engine that takes what it is given."""


def submitted(place: Place, at_once: int | None = None, count: int = 3) -> Sweep:
    values = [0.1 * number for number in range(1, count + 1)]
    return commands.submit(place.owner, SweepRequest(Document(TEXT), grid={"lr": values}, at_once=at_once))[0]


def states(sweep: Sweep) -> list[str]:
    return [run.job.state for run in commands.latest(sweep)]


def ended(job: Job, state: State = State.SUCCEEDED) -> None:
    code = {State.SUCCEEDED: ReasonCode.COMPLETED, State.FAILED: ReasonCode.EXIT_CODE}[state]
    job.refresh_from_db()
    transitions.end(job, attempt_of(job), state, Reason(code))


def test_sweep_combinations_expand_grid_and_keep_list() -> None:
    grid = combinations({"a": [1, 2], "b": ["x", "y"]}, [])
    assert grid == [{"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 2, "b": "x"}, {"a": 2, "b": "y"}]
    assert combinations({}, [{"a": 1}, {"b": 2}]) == [{"a": 1}, {"b": 2}]


def test_sweep_values_keep_types_and_fill_their_places() -> None:
    base = spec("t", env={"LR": "1"})
    values = {"env.LR": 0.5, "env.NEW": "n", "roles.0.resources.gpus": 2, "priority": 7}
    [made] = expand(base, [values])
    assert (made.name, made.env, made.priority) == ("t-1", {"LR": "0.5", "NEW": "n"}, 7)
    assert made.roles[0].resources.gpus == 2
    role = base.roles[0].model_copy(update={"command": "run {lr} {lr} {other}"})
    [made] = expand(base.model_copy(update={"roles": (role,)}), [{"lr": 0.1}])
    assert made.roles[0].command == "run 0.1 0.1 {other}"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([{"nowhere": 1}], [("sweep_no_such_field", "/parameters/nowhere")]),
        ([{"roles.5.command": "x"}], [("sweep_no_such_field", "/parameters/roles.5.command")]),
        ([{"roles.0.nothing": "x"}], [("sweep_no_such_field", "/parameters/roles.0.nothing")]),
        ([{"priority": 10}, {"priority": 11}], [("sweep_wrong_value", "/parameters/priority")]),
        (
            [{"roles.0.resources.gpus": "two"}],
            [("sweep_wrong_value", "/parameters/roles.0.resources.gpus")],
        ),
    ],
)
def test_sweep_invalid_values_are_reported_once(
    values: list[dict[str, Any]], expected: list[tuple[str, str]]
) -> None:
    with pytest.raises(CannotSweepError) as caught:
        expand(spec(), values)
    assert [(problem.code, problem.pointer) for problem in caught.value.problems] == expected
    assert all(messages.problem_message(problem) for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("grid", "listed", "code"),
    [
        ({}, [], "sweep_without_parameters"),
        ({"a": []}, [], "sweep_without_parameters"),
        ({"a": [1]}, [{"a": 1}], "sweep_grid_or_list"),
        ({"a": range(201)}, [], "sweep_too_many"),
        ({"a": range(10**6), "b": range(10**6)}, [], "sweep_too_many"),
        ({f"p{number}": [1] for number in range(21)}, [], "sweep_too_many"),
    ],
)
def test_sweep_outside_size_limits_is_refused(grid: dict[str, Any], listed: list[Any], code: str) -> None:
    with pytest.raises(CannotSweepError) as caught:
        combinations(grid, listed)
    assert caught.value.problems[0].code == code


def test_sweep_job_file_contains_its_own_value(place: Place) -> None:
    sweep = submitted(place)
    runs = commands.latest(sweep)
    assert [run.job.name for run in runs] == ["lr-1", "lr-2", "lr-3"]
    texts = [JobFile.objects.get(job=run.job).text for run in runs]
    assert "train --lr=0.1" in texts[0]
    assert all("// one file for all" in text for text in texts)


def test_sweep_job_with_filled_words_has_no_unfilled_note(place: Place) -> None:
    for run in commands.latest(submitted(place)):
        codes = [row["code"] for row in JobFile.objects.get(job=run.job).notes]
        assert "word_unfilled" not in codes


def test_sweep_runs_no_more_than_its_limit_at_once(place: Place) -> None:
    sweep = submitted(place, at_once=2, count=5)
    reconcile.drain(place.cluster.pk)
    assert states(sweep) == ["PENDING", "PENDING", "QUEUED", "QUEUED", "QUEUED"]
    ended(commands.latest(sweep)[0].job, State.FAILED)
    reconcile.drain(place.cluster.pk)
    assert states(sweep) == ["FAILED", "PENDING", "PENDING", "QUEUED", "QUEUED"]
    commands.change(place.owner, sweep, 3)
    reconcile.drain(place.cluster.pk)
    assert states(sweep) == ["FAILED", "PENDING", "PENDING", "PENDING", "QUEUED"]


def test_sweep_waiting_job_shows_turn_as_reason(place: Place) -> None:
    sweep = submitted(place, at_once=1, count=2)
    reconcile.drain(place.cluster.pk)
    job = commands.latest(sweep)[1].job
    pending_reasons.load_reasons([job])
    reason = pending_reasons.reason_of(job)
    words = messages.reason_message(reason.code, reason.params)
    assert words.startswith("Waiting for its turn in the sweep (at most 1 job")


def test_sweep_missed_turn_is_caught_up(place: Place) -> None:
    sweep = submitted(place, at_once=1, count=2)
    first = commands.latest(sweep)[0].job
    Job.objects.filter(pk=first.pk).update(state="SUCCEEDED")
    dependencies.settle(place.cluster.pk)
    assert not SweepRun.objects.filter(sweep=sweep, waits=True).exists()


def test_sweep_failing_midway_creates_no_jobs(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    count, store = [0], submission.store

    def fails_at_last(*args: Any, **more: Any) -> Job:
        count[0] += 1
        if count[0] == 3:
            raise RuntimeError
        return store(*args, **more)

    monkeypatch.setattr(submission, "store", fails_at_last)
    with pytest.raises(RuntimeError):
        submitted(place)
    assert (Job.objects.count(), Sweep.objects.count()) == (0, 0)


def test_sweep_problem_common_to_all_jobs_is_reported_once(place: Place) -> None:
    asked = SweepRequest(
        Document(TEXT.replace('"UserCommand"', '"Priority": 99, "UserCommand"')), grid={"lr": [1, 2]}
    )
    with pytest.raises(Refused) as caught:
        commands.submit(place.owner, asked)
    assert len(caught.value.problems) == 1


def test_sweep_request_repeated_returns_same_sweep(place: Place) -> None:
    asked = SweepRequest(Document(TEXT), grid={"lr": [1, 2]})
    first, before = commands.submit(place.owner, asked, "key")
    again, replayed = commands.submit(place.owner, asked, "key")
    assert (before, replayed, again) == (False, True, first)
    assert Job.objects.count() == 2
    with pytest.raises(Conflict):
        commands.submit(place.owner, SweepRequest(Document(TEXT), grid={"lr": [3]}), "key")


def test_sweep_rerun_repeats_only_failed_jobs_and_only_once(place: Place) -> None:
    sweep = submitted(place)
    reconcile.drain(place.cluster.pk)
    runs = commands.latest(sweep)
    ended(runs[0].job, State.FAILED)
    ended(runs[1].job)
    [new] = commands.again(place.owner, sweep)
    assert new.origin == runs[0].job
    assert commands.again(place.owner, sweep) == []
    assert [(run.number, run.round) for run in commands.latest(sweep)] == [(1, 2), (2, 1), (3, 1)]
    assert commands.latest(sweep)[0].values == runs[0].values


def test_sweep_stop_stops_all_jobs_and_starts_none(place: Place) -> None:
    sweep = submitted(place, at_once=1)
    assert commands.stop(place.owner, sweep) == 3
    reconcile.drain(place.cluster.pk)
    assert states(sweep) == ["STOPPED"] * 3


def test_sweep_actions_are_limited_to_owner_and_workspace_admins(place: Place) -> None:
    sweep = submitted(place)
    member, stranger = User.objects.create_user("mia"), User.objects.create_user("eve")
    Membership.objects.create(workspace=place.workspace, user=member, role=Role.DEVELOPER)
    manager = User.objects.create_user("max")
    Membership.objects.create(workspace=place.workspace, user=manager, role=Role.ADMIN)
    for person in (member, stranger):
        for act in (commands.stop, commands.again):
            with pytest.raises(Forbidden):
                act(person, sweep)
        with pytest.raises(Forbidden):
            commands.change(person, sweep, 1)
    assert Sweep.objects.visible_to(member).get() == sweep
    assert not Sweep.objects.visible_to(stranger).exists()
    assert commands.stop(manager, sweep) == 3
