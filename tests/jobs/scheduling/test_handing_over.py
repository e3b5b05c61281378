"""Many jobs handed over: several at the same time where the engine takes them so, each of them once."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping, Sequence
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs import clusters
from jobs.backends.base import Handle, NotSubmitted, Refused, Submission, Unknown
from jobs.lifecycle import transitions
from jobs.models import Attempt, Job
from jobs.scheduling import admission, reconcile
from jobs.spec import Resources, RoleSpec
from jobs.states import EndKind, Reason, ReasonCode, State
from quotas.models import Reservation
from tests.jobs.conftest import Place, queued, spec
from tests.jobs.engine import MemoryEngine

MANY = 40
TINY = (RoleSpec(name="w", command="true", resources=Resources(cpu_milli=1, memory_mib=1)),)


class Wide(MemoryEngine):
    """Takes three at the same time; at its `meeting` the first three wait for each other."""

    at_once = 3

    def __init__(self) -> None:
        super().__init__()
        self.meeting: threading.Barrier | None = None
        self.calls = itertools.count()
        self.threads: set[int] = set()
        self.silent: set[str] = set()
        self.refused: set[str] = set()
        self.late: set[str] = set()
        self.found: list[int] = []

    def find(self, keys: Sequence[str]) -> Mapping[str, Sequence[Handle]]:
        self.found.append(len(keys))
        return super().find(keys)

    def submit(self, submission: Submission) -> Handle:
        self.threads.add(threading.get_ident())
        if next(self.calls) < self.at_once and self.meeting is not None:
            self.meeting.wait(60)
        if submission.key in self.silent:
            raise Unknown("no answer")
        if submission.key in self.refused:
            raise Refused(Reason(ReasonCode.REFUSED, {"detail": "no"}))
        if submission.key in self.late:
            raise NotSubmitted(Reason(ReasonCode.WAITING_CAPACITY))
        return super().submit(submission)


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> Wide:
    made = Wide()
    for module in (clusters, reconcile):
        monkeypatch.setattr(module, "backend_for", lambda _cluster: made)
    return made


def jobs(place: Place, count: int) -> list[Attempt]:
    made = [queued(place, spec(f"j{number}", roles=TINY)) for number in range(count)]
    return list(Attempt.objects.filter(job__in=made).order_by("id"))


def states() -> list[str]:
    return list(Job.objects.order_by("id").values_list("state", flat=True))


def test_send_of_many_jobs_runs_in_parallel_and_submits_each_once(place: Place, wide: Wide) -> None:
    attempts = jobs(place, MANY)
    wide.meeting = threading.Barrier(wide.at_once)
    reconcile.drain(place.cluster.pk)
    assert wide.starts == {attempt.key: 1 for attempt in attempts}
    assert len(wide.threads) == wide.at_once
    assert threading.get_ident() not in wide.threads
    assert states() == [State.PENDING] * MANY


def test_send_of_many_jobs_takes_few_queries_each(place: Place, wide: Wide) -> None:
    jobs(place, MANY)
    admission.admit(place.cluster.pk)
    with CaptureQueriesContext(connection) as told:
        assert reconcile.send(place.cluster.pk) == MANY
    assert len(told) < 4 * MANY


def test_send_failure_of_one_job_leaves_others_unaffected(place: Place, wide: Wide) -> None:
    attempts = jobs(place, 9)
    wide.refused, wide.late = {attempts[1].key}, {attempts[4].key}
    reconcile.drain(place.cluster.pk)
    expected = [State.PENDING] * 9
    expected[1], expected[4] = State.FAILED, State.QUEUED
    assert states() == expected


def test_send_without_reply_leaves_rest_for_later(place: Place, wide: Wide) -> None:
    attempts = jobs(place, MANY)
    wide.silent = {attempt.key for attempt in attempts[:3]}
    admission.admit(place.cluster.pk)
    assert reconcile.send(place.cluster.pk) == 0
    assert wide.starts == {}
    told = Job.objects.filter(reason_code=ReasonCode.UNCONFIRMED)
    assert 1 <= told.count() <= wide.at_once
    assert Attempt.objects.exclude(lease_token="").count() == told.count()
    wide.silent = set()
    Attempt.objects.exclude(lease_until=None).update(lease_until="2020-01-01T00:00:00Z")
    unconfirmed = told.count()
    reconcile.drain(place.cluster.pk)
    assert wide.starts == {attempt.key: 1 for attempt in attempts}
    assert wide.found == [unconfirmed]


def test_send_of_previously_leased_attempts_looks_them_up_in_one_call(place: Place, wide: Wide) -> None:
    attempts = jobs(place, 9)
    admission.admit(place.cluster.pk)
    Attempt.objects.update(lease_token="somebody", lease_until="2020-01-01T00:00:00Z")
    reconcile.send(place.cluster.pk)
    assert wide.found == [9]
    assert wide.starts == {attempt.key: 1 for attempt in attempts}


def test_send_past_lease_expiry_submits_only_one_attempt(
    place: Place, wide: Wide, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs(place, 9)
    admission.admit(place.cluster.pk)
    monkeypatch.setattr(reconcile, "LEASE", timedelta())
    assert reconcile.send(place.cluster.pk) == 1
    assert len(wide.starts) == 1
    assert not Attempt.objects.filter(handle="").exclude(lease_token="").exists()


def test_admission_of_many_jobs_takes_as_few_queries_as_of_few(place: Place, wide: Wide) -> None:
    told = []
    for count in (3, MANY):
        jobs(place, count)
        with CaptureQueriesContext(connection) as asked:
            assert admission.admit(place.cluster.pk) == count
        told.append(len(asked))
    assert told[1] <= told[0] + 2


def test_admission_skips_job_with_requested_end(place: Place, wide: Wide) -> None:
    attempts = jobs(place, 3)
    wanted = attempts[1]
    transitions.want_end(wanted.job, wanted, EndKind.USER_STOP)
    assert admission.admit(place.cluster.pk) == 2
    assert states() == [State.SUBMITTING, State.QUEUED, State.SUBMITTING]
    assert not Reservation.objects.filter(request__holder=wanted.key).exists()
