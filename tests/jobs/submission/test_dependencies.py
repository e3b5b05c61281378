"""Starting after other jobs: who may be named, who starts when, and what becomes of who can't."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from jobs import messages, submission
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.lifecycle import pending_reasons, transitions
from jobs.models import Dependency, Event, Job
from jobs.scheduling import reconcile
from jobs.spec import JobSpec
from jobs.states import Reason, ReasonCode, State
from jobs.submission import dependencies
from quotas.models import Membership, Request, Role, User, Workspace
from tests.jobs.conftest import Place, attempt_of, queued, spec
from tests.jobs.engine import MemoryEngine

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _engine(engine: MemoryEngine) -> None:
    """Every test has an engine that runs what it is told to."""


def text(**ours: object) -> str:
    value = {
        "DisplayName": "child",
        "JobType": "PyTorchJob",
        "JobSpecs": [{"Type": "Worker", "Image": "i", "PodCount": 1, "ResourceConfig": {"CPU": "1"}}],
        "UserCommand": "true",
        "JobConsole": ours,
    }
    return json.dumps(value, indent=1)


def child_of(place: Place, *others: Job, when: str = "succeeded", **ours: object) -> Job:
    named = [{"job": other.public_id, "when": when} for other in others]
    return submission.submit(place.owner, Document(text(after=named, **ours))).job


def state_of(job: Job) -> tuple[str, str]:
    job.refresh_from_db()
    return job.state, job.reason_code


def waits(job: Job) -> bool:
    return Request.objects.get(holder=attempt_of(job).key).others


def ended(place: Place, job: Job, state: State) -> None:
    """The job has run and has ended so."""
    codes = {State.SUCCEEDED: ReasonCode.COMPLETED, State.FAILED: ReasonCode.EXIT_CODE}
    codes |= {State.STOPPED: ReasonCode.USER_STOP, State.LOST: ReasonCode.LOST}
    job.refresh_from_db()
    if job.state == State.QUEUED and state is not State.STOPPED:
        reconcile.drain(place.cluster.pk)
        job.refresh_from_db()
    transitions.end(job, attempt_of(job), state, Reason(codes[state]))


def test_dependent_job_starts_after_named_job(place: Place) -> None:
    parent = queued(place)
    child = child_of(place, parent)
    reconcile.drain(place.cluster.pk)
    assert state_of(parent)[0] == State.PENDING
    assert state_of(child) == (State.QUEUED, ReasonCode.WAITING_OTHERS)
    ended(place, parent, State.SUCCEEDED)
    assert not waits(child)
    reconcile.drain(place.cluster.pk)
    assert state_of(child)[0] == State.PENDING


@pytest.mark.parametrize(
    ("when", "end", "starts"),
    [
        ("succeeded", State.SUCCEEDED, True),
        ("succeeded", State.FAILED, False),
        ("succeeded", State.STOPPED, False),
        ("failed", State.FAILED, True),
        ("failed", State.SUCCEEDED, False),
        ("failed", State.STOPPED, False),
        ("ended", State.SUCCEEDED, True),
        ("ended", State.FAILED, True),
        ("ended", State.STOPPED, True),
    ],
)
def test_dependency_condition_decides_start_or_stop(
    place: Place, when: str, end: State, starts: bool
) -> None:
    parent = queued(place)
    child = child_of(place, parent, when=when)
    ended(place, parent, end)
    reconcile.drain(place.cluster.pk)
    wanted = (State.PENDING, None) if starts else (State.STOPPED, ReasonCode.AFTER_NEVER)
    found = state_of(child)
    assert found[0] == wanted[0]
    assert wanted[1] in (None, found[1])


def test_dependency_on_lost_job_waits_until_settled(place: Place) -> None:
    parent = queued(place)
    child = child_of(place, parent, when="ended")
    ended(place, parent, State.LOST)
    reconcile.drain(place.cluster.pk)
    assert state_of(child)[0] == State.QUEUED
    admin = User.objects.create_superuser("root")
    submission.settle(admin, parent, State.FAILED, "seen")
    reconcile.drain(place.cluster.pk)
    assert state_of(child)[0] == State.PENDING


def test_dependency_on_two_jobs_waits_for_both(place: Place) -> None:
    one, two = queued(place), queued(place)
    child = child_of(place, one, two)
    ended(place, one, State.SUCCEEDED)
    assert waits(child)
    ended(place, two, State.SUCCEEDED)
    assert not waits(child)


def test_dependency_chain_stops_entirely_after_first_failure(place: Place) -> None:
    chain = [queued(place)]
    for _step in range(30):
        chain.append(child_of(place, chain[-1]))
    ended(place, chain[0], State.FAILED)
    reconcile.drain(place.cluster.pk)
    assert {state_of(job) for job in chain[1:]} == {(State.STOPPED, ReasonCode.AFTER_NEVER)}


def test_dependency_never_satisfied_holds_job_if_requested(place: Place) -> None:
    parent = queued(place)
    child = child_of(place, parent, after_never="hold")
    ended(place, parent, State.FAILED)
    reconcile.drain(place.cluster.pk)
    assert state_of(child) == (State.QUEUED, ReasonCode.HELD)
    assert Event.objects.filter(job=child, kind=Event.Kind.HELD).count() == 1
    submission.release(place.owner, child)
    reconcile.drain(place.cluster.pk)
    assert state_of(child)[0] == State.PENDING


def test_hold_and_dependency_are_independent(place: Place) -> None:
    parent = queued(place)
    child = child_of(place, parent, hold=True)
    submission.release(place.owner, child)
    reconcile.drain(place.cluster.pk)
    assert state_of(child)[0] == State.QUEUED
    submission.hold(place.owner, child)
    ended(place, parent, State.SUCCEEDED)
    reconcile.drain(place.cluster.pk)
    assert state_of(child)[0] == State.QUEUED
    submission.release(place.owner, child)
    reconcile.drain(place.cluster.pk)
    assert state_of(child)[0] == State.PENDING


def test_waiting_dependent_job_can_be_stopped(place: Place) -> None:
    child = child_of(place, queued(place))
    submission.stop(place.owner, child)
    assert state_of(child) == (State.STOPPED, ReasonCode.USER_STOP)


def test_dependency_missed_release_is_caught_up(place: Place) -> None:
    parent = queued(place)
    child = child_of(place, parent)
    ended(place, parent, State.SUCCEEDED)
    Request.objects.filter(holder=attempt_of(child).key).update(others=True)
    Dependency.objects.filter(job=child).update(state="open")
    dependencies.settle(place.cluster.pk)
    assert not waits(child)


def test_dependency_on_deleted_lost_job_stops_dependent(place: Place) -> None:
    parent = queued(place)
    child = child_of(place, parent)
    ended(place, parent, State.LOST)
    Dependency.objects.filter(job=child).update(other=None)
    reconcile.drain(place.cluster.pk)
    assert state_of(child) == (State.STOPPED, ReasonCode.AFTER_NEVER)


def test_dependency_finds_job_by_any_id_or_own_name(place: Place) -> None:
    older, parent = queued(place, spec("train")), queued(place, spec("train"))
    name = parent.public_id
    for named in (name, f"dlc{name}", f"job-{name}", f"{place.owner.get_username()}~train"):
        assert dependencies.find_named(place.owner, named) == parent
    assert dependencies.find_named(place.owner, older.public_id) == older
    for named in ("nosuch", "bob~train", "x" * 12, f"dlc-{name}"):
        assert dependencies.find_named(place.owner, named) is None


def test_dependency_finds_only_visible_jobs(place: Place) -> None:
    stranger, member = User.objects.create_user("eve"), User.objects.create_user("mia")
    elsewhere = Workspace.objects.create(slug="speech", name="Speech")
    Membership.objects.create(workspace=elsewhere, user=stranger, role=Role.DEVELOPER)
    Membership.objects.create(workspace=place.workspace, user=member, role=Role.DEVELOPER)
    parent = queued(place)
    assert dependencies.find_named(stranger, parent.public_id) is None
    assert dependencies.find_named(member, parent.public_id) == parent
    assert dependencies.find_named(member, f"{place.owner.get_username()}~{parent.name}") is None


def problem(place: Place, **ours: object) -> tuple[str, int | None, str]:
    with pytest.raises(Refused) as caught:
        submission.submit(place.owner, Document(text(**ours)))
    [found] = caught.value.problems
    return found.code, found.line, messages.problem_message(found)


def test_dependency_impossible_is_reported_at_its_line(place: Place) -> None:
    code, line, words = problem(place, after=[{"job": "nosuch"}])
    assert (code, line) == ("no_job_to_wait_for", 18)
    assert "nosuch" in words
    parent = queued(place)
    ended(place, parent, State.FAILED)
    code, _line, words = problem(place, after=[{"job": parent.public_id}])
    assert code == "never_succeeded"
    assert "Failed" in words
    assert Job.objects.filter(name="child").count() == 0


def test_dependency_already_satisfied_is_not_waited_for(place: Place) -> None:
    parent = queued(place)
    ended(place, parent, State.SUCCEEDED)
    assert not waits(child_of(place, parent))


def test_dependency_reason_names_other_job_and_its_state(place: Place) -> None:
    one, two = queued(place, spec("train")), queued(place, spec("test"))
    child = child_of(place, one, two)
    reconcile.drain(place.cluster.pk)
    child.refresh_from_db()
    pending_reasons.load_reasons([child])
    reason = pending_reasons.reason_of(child)
    words = messages.reason_message(reason.code, reason.params)
    assert words == "Starts after train (Pending) succeeds; also waiting for 1 job."
    ended(place, one, State.SUCCEEDED)
    child.refresh_from_db()
    pending_reasons.load_reasons([child])
    reason = pending_reasons.reason_of(child)
    assert messages.reason_message(reason.code, reason.params).startswith("Starts after test (")


def test_dependency_reason_shows_job_of_other_workspace_by_id(place: Place) -> None:
    parent = queued(place, spec("secret plan"))
    child = child_of(place, parent)
    elsewhere = Workspace.objects.create(slug="speech", name="Speech")
    Job.objects.filter(pk=parent.pk).update(workspace=elsewhere)
    child.reason_code = ReasonCode.WAITING_OTHERS
    pending_reasons.load_reasons([child])
    told = pending_reasons.reason_of(child)
    assert parent.public_id in messages.reason_message(told.code, told.params)
    assert "secret plan" not in messages.reason_message(told.code, told.params)
    assert dependencies.list_dependencies(place.owner, child)[0].job is None


def test_retry_of_dependent_job_does_not_wait_again(place: Place) -> None:
    parent = queued(place)
    child = child_of(place, parent, retry={"limit": 1})
    ended(place, parent, State.SUCCEEDED)
    reconcile.drain(place.cluster.pk)
    child.refresh_from_db()
    transitions.queue_retry(child, attempt_of(child), Reason(ReasonCode.EXIT_CODE), delay=timedelta())
    assert not waits(child)


def test_list_dependents_shows_jobs_only_to_permitted_users(place: Place) -> None:
    parent = queued(place)
    child = child_of(place, parent)
    [link] = dependencies.list_dependents(place.owner, parent)
    assert (link.job, link.words) == (child, "on success")
    assert dependencies.list_dependents(User.objects.create_user("eve"), parent) == []


def test_job_without_dependencies_has_no_dependency_rows(place: Place) -> None:
    job = queued(place, JobSpec(name="a", roles=spec().roles))
    assert not waits(job)
    assert Dependency.objects.count() == 0
