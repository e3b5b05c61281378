"""Jobs that don't use what they hold: measured, warned, ended; never where it is not known."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from jobs import submission
from jobs.backends.base import Handle
from jobs.backends.measures import Transferred, Use
from jobs.messages.events import event_message
from jobs.messages.notifications import notification_words
from jobs.models import (
    AccessSession,
    Attempt,
    Endpoint,
    EndpointVisit,
    Event,
    Idleness,
    Job,
    MeasuredCluster,
    MetricAlert,
    NotificationEvent,
    Replica,
    ReplicaUsage,
)
from jobs.notifications import alerts
from jobs.scheduling import idle, reconcile
from jobs.scheduling.usage_samples import MOST_SAMPLES
from jobs.spec import Alert, AlertComparison, AlertMetric, JobSpec, Resources, RetryPolicy, RoleSpec
from jobs.states import EndKind, ReasonCode, State
from quotas.models import Membership, Quota, Role, User
from tests.jobs import engine as memory
from tests.jobs.conftest import Place, attempt_of, queued, spec
from tests.jobs.engine import MemoryEngine

MINUTE = timedelta(minutes=1)
GPUS = (RoleSpec(name="worker", command="true", resources=Resources(gpus=2, gpu_type="A100")),)


@pytest.fixture
def place(place: Place) -> Place:
    """Warned after an hour, ended after three; one extension."""
    place.node.gpus = {"A100": 8}
    place.node.save()
    Quota.objects.filter(pk=place.quota.pk).update(
        idle_warn_minutes=60, idle_release_minutes=180, idle_extensions=1
    )
    place.quota.refresh_from_db()
    return place


def running(place: Place, engine: MemoryEngine, job_spec: JobSpec | None = None) -> Job:
    job = queued(place, job_spec or spec(roles=GPUS))
    reconcile.drain(place.cluster.pk)
    engine.run(handle_of(job))
    reconcile.observe(place.cluster.pk)
    return job


def handle_of(job: Job) -> Handle:
    return Handle(attempt_of(job).handle)


def uses(engine: MemoryEngine, job: Job, *percents: int | None, cpu_s: float = 0) -> None:
    known = None if None in percents else tuple(each for each in percents if each is not None)
    engine.uses[handle_of(job)] = (Use("worker", 0, cpu_s, 512, known),)


def look(place: Place, after: timedelta = MINUTE, *, measured: timedelta = MINUTE) -> None:
    """What a worker sees `after` the last look; it had last measured `measured` ago."""
    MeasuredCluster.objects.update(claimed_at=F("claimed_at") - after, at=F("at") - measured)
    names = ("counts_from", "warned_at", "ends_at")
    Idleness.objects.update(**{name: F(name) - after for name in names})
    Job.objects.exclude(idle_since=None).update(idle_since=F("idle_since") - after)
    ReplicaUsage.objects.update(at=F("at") - after)
    idle.watch(place.cluster.pk)


def idles(place: Place, engine: MemoryEngine, job: Job) -> Idleness:
    """The job has been idle since a first, unbroken look."""
    uses(engine, job, 0, 1)
    look(place)
    look(place)
    job.refresh_from_db()
    assert job.is_idle
    return Idleness.objects.get(attempt=attempt_of(job))


def kinds(job: Job) -> list[str]:
    return list(Event.objects.filter(job=job).order_by("pk").values_list("kind", flat=True))


def test_idle_job_is_warned_then_ended_without_retry(place: Place, engine: MemoryEngine) -> None:
    job = running(place, engine, spec(roles=GPUS, retry=RetryPolicy(limit=5)))
    idles(place, engine, job)
    look(place, 50 * MINUTE)
    assert not NotificationEvent.objects.filter(kind="job.idle").exists()
    look(place, 10 * MINUTE)
    told = NotificationEvent.objects.get(kind="job.idle")
    assert told.people == [place.owner.pk]
    assert told.params["gpus"] == 2
    assert 60 <= told.params["minutes"] <= 63
    assert told.params["until"]
    look(place, 110 * MINUTE)
    assert attempt_of(job).end_kind == ""
    look(place, 11 * MINUTE)
    assert attempt_of(job).end_kind == EndKind.IDLE
    reconcile.observe(place.cluster.pk)
    assert engine.stopped == [handle_of(job)]
    engine.end_stopped(handle_of(job))
    reconcile.observe(place.cluster.pk)
    job.refresh_from_db()
    assert (job.state, job.reason_code, job.attempt_number) == (State.STOPPED, ReasonCode.IDLE, 1)
    assert 180 * 60 <= job.reason_params["limit_s"] <= 190 * 60
    assert NotificationEvent.objects.filter(kind="job.idle").count() == 1
    assert not job.is_idle


def test_alert_is_told_once_until_it_clears(place: Place, engine: MemoryEngine) -> None:
    alert = Alert(metric=AlertMetric.GPU, value=20, minutes=10)
    job = running(place, engine, spec(roles=GPUS, alert=alert))
    uses(engine, job, 5, 15)
    look(place)
    look(place)
    assert Event.Kind.ALERT not in kinds(job)
    MetricAlert.objects.update(since=F("since") - 10 * MINUTE)
    look(place)
    look(place)
    (event,) = Event.objects.filter(job=job, kind=Event.Kind.ALERT)
    assert event_message(Event.Kind.ALERT, event.params) == (
        "Alert: GPU utilization below 20 % for 10 min",
        "measured: 10 %",
    )
    told = NotificationEvent.objects.get(kind="job.alert")
    assert (told.people, alerts.is_alert(told)) == ([place.owner.pk], True)
    words = notification_words(told.kind, told.params)
    assert (words.title, words.text) == (
        "job: GPU utilization below 20 % for 10 min.",
        "Measured: 10 %.",
    )
    uses(engine, job, 90, 90)
    look(place)
    assert not MetricAlert.objects.exists()
    uses(engine, job, 0, 0)
    look(place)
    MetricAlert.objects.update(since=F("since") - 10 * MINUTE)
    look(place)
    assert kinds(job).count(Event.Kind.ALERT) == 2
    over = Alert(metric=AlertMetric.RUNNING, comparison=AlertComparison.ABOVE, value=60, minutes=0)
    longer = running(place, engine, spec(roles=GPUS, alert=over))
    uses(engine, longer, 50, 50)
    look(place)
    assert Event.Kind.ALERT not in kinds(longer)
    Attempt.objects.filter(job=longer).update(started_at=F("started_at") - 61 * MINUTE)
    look(place)
    assert Event.Kind.ALERT in kinds(longer)


def test_idle_job_used_again_resets_and_is_warned_again_later(place: Place, engine: MemoryEngine) -> None:
    job = running(place, engine)
    idles(place, engine, job)
    look(place, 61 * MINUTE)
    uses(engine, job, 0, 90)
    look(place)
    job.refresh_from_db()
    row = Idleness.objects.get()
    assert (job.idle_since, row.counts_from, row.warned_at, row.ends_at) == (None, None, None, None)
    uses(engine, job, 0, 0)
    look(place)
    look(place, 200 * MINUTE)
    assert NotificationEvent.objects.filter(kind="job.idle").count() == 2
    assert attempt_of(job).end_kind == "", "the end comes as long after the warning as the policy has it"


class Unmeasured(MemoryEngine):
    """An engine that can't measure."""

    measure = None  # type: ignore[assignment]


@pytest.mark.parametrize("what", ["unknown_gpu", "not_measured", "a_pause", "can_not_measure", "away"])
def test_idle_watch_never_counts_unknown_usage_as_idle(
    what: str, place: Place, engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = running(place, engine)
    row = idles(place, engine, job)
    if what == "unknown_gpu":
        uses(engine, job, 0, None)
    elif what == "not_measured":
        engine.uses.clear()
    elif what == "can_not_measure":
        monkeypatch.setattr(memory, "running", Unmeasured(**vars(engine)))
    elif what == "away":
        engine.away = True
    pause = timedelta(hours=5) if what == "a_pause" else MINUTE
    look(place, timedelta(hours=5), measured=pause)
    look(place, MINUTE)
    row.refresh_from_db()
    assert row.warned_at is None
    assert attempt_of(job).end_kind == ""
    if what == "a_pause":
        assert row.counts_from is not None
        assert timezone.now() - row.counts_from < 2 * MINUTE


def test_idle_job_end_can_be_postponed_repeatedly_by_owner(place: Place, engine: MemoryEngine) -> None:
    job = running(place, engine)
    idles(place, engine, job)
    with pytest.raises(submission.NotIdle):
        submission.keep(place.owner, job)
    look(place, 61 * MINUTE)
    submission.keep(place.owner, job)
    assert kinds(job)[-2:] == [Event.Kind.IDLE_WARNED, Event.Kind.STILL_NEEDED]
    look(place, 30 * MINUTE)
    job.refresh_from_db()
    assert job.is_idle, "it is kept, and idle all the same"
    assert NotificationEvent.objects.filter(kind="job.idle").count() == 1
    look(place, 31 * MINUTE)
    assert NotificationEvent.objects.filter(kind="job.idle").count() == 2
    with pytest.raises(submission.NotIdle):
        submission.keep(place.owner, job)


def test_idle_job_end_is_postponed_by_workspace_admins_but_not_members(
    place: Place, engine: MemoryEngine
) -> None:
    job = running(place, engine)
    idles(place, engine, job)
    look(place, 61 * MINUTE)
    for name, role in (("bob", Role.DEVELOPER), ("mallory", None)):
        person = User.objects.create_user(name)
        if role:
            Membership.objects.create(workspace=place.workspace, user=person, role=role)
        with pytest.raises(submission.Forbidden):
            submission.keep(person, job)
    manager = User.objects.create_user("carol")
    Membership.objects.create(workspace=place.workspace, user=manager, role=Role.ADMIN)
    submission.keep(manager, job)


def exempt_person(place: Place) -> None:
    place.quota.idle_exempt_people.add(place.owner)


def exempt_role(place: Place) -> None:
    Quota.objects.update(idle_exempt_roles=["developer"])


def exempt_label(place: Place) -> None:
    Quota.objects.update(idle_exempt_labels={"keep": ""})


def exempt_quota(place: Place) -> None:
    Quota.objects.update(idle_exempt=True)


@pytest.mark.parametrize("exempt", [exempt_person, exempt_role, exempt_label, exempt_quota])
def test_idle_job_exempt_by_policy_is_not_warned(
    exempt: Callable[[Place], None], place: Place, engine: MemoryEngine
) -> None:
    job = running(place, engine, spec(roles=GPUS, tags={"keep": "yes"}))
    exempt(place)
    idles(place, engine, job)
    look(place, 300 * MINUTE)
    assert Idleness.objects.get().warned_at is None


def test_idle_policy_is_inherited_until_overridden(place: Place, engine: MemoryEngine) -> None:
    root = Quota.objects.create(
        workspace=place.workspace, cluster=place.cluster, slug="all", name="All", idle_warn_minutes=10
    )
    Quota.objects.filter(pk=place.quota.pk).update(
        parent=root, idle_warn_minutes=None, idle_release_minutes=None
    )
    job = running(place, engine)
    idles(place, engine, job)
    look(place, 11 * MINUTE)
    row = Idleness.objects.get()
    assert row.warned_at is not None
    assert row.ends_at is None
    look(place, timedelta(days=2))
    assert attempt_of(job).end_kind == "", "that policy ends nothing"
    Quota.objects.filter(pk=root.pk).update(idle_release_minutes=20)
    look(place)
    assert attempt_of(job).end_kind == "", "nobody was told of an end so far"
    look(place, 11 * MINUTE)
    assert attempt_of(job).end_kind == EndKind.IDLE


def test_idle_limit_in_job_environment_ends_job(place: Place, engine: MemoryEngine) -> None:
    Quota.objects.update(idle_warn_minutes=None, idle_release_minutes=None)
    job = running(place, engine, spec(env={idle.OWN_LIMIT: "40m"}))
    uses(engine, job)
    for _each in range(3):
        look(place)
    look(place, 30 * MINUTE)
    assert Idleness.objects.get().warned_at is not None
    look(place, 11 * MINUTE)
    assert attempt_of(job).end_kind == EndKind.IDLE


@pytest.mark.parametrize("text", ["", "soon", "0h", "-1h", "4", "h"])
def test_idle_limit_unreadable_in_environment_is_ignored(text: str) -> None:
    assert idle.own_limit(spec(env={idle.OWN_LIMIT: text})) is None


def test_batch_job_without_gpus_is_never_idle(place: Place, engine: MemoryEngine) -> None:
    job = running(place, engine, spec())
    uses(engine, job)
    for _each in range(4):
        look(place, 100 * MINUTE)
    job.refresh_from_db()
    assert job.idle_since is None


def interactive(place: Place, engine: MemoryEngine) -> Job:
    job = running(place, engine)
    replica = Replica.objects.get(attempt=attempt_of(job))
    Endpoint.objects.create(replica=replica, label="page", slug="page", host="127.0.0.1", port=9, ready=True)
    return job


def test_interactive_job_with_cpu_use_is_not_idle(place: Place, engine: MemoryEngine) -> None:
    job = interactive(place, engine)
    for second in range(4):
        uses(engine, job, 0, 0, cpu_s=30.0 * second)
        look(place)
    job.refresh_from_db()
    assert job.idle_since is None
    idles(place, engine, job)


def test_interactive_job_with_open_shell_or_visited_page_is_not_idle(
    place: Place, engine: MemoryEngine
) -> None:
    job = interactive(place, engine)
    replica = Replica.objects.get(attempt=attempt_of(job))
    idles(place, engine, job)
    entry = AccessSession.objects.create(kind=AccessSession.Kind.SSH, replica=replica, user=place.owner)
    look(place)
    job.refresh_from_db()
    assert job.idle_since is None
    entry.delete()
    idles(place, engine, job)
    visit = EndpointVisit.objects.create(
        endpoint=replica.endpoints.get(),
        user=place.owner,
        session_key="s",
        secret="x",
        seen_at=timezone.now(),
    )
    look(place)
    job.refresh_from_db()
    assert job.idle_since is None
    EndpointVisit.objects.filter(pk=visit.pk).update(seen_at=timezone.now() - timedelta(hours=1))
    idles(place, engine, job)


def test_idle_watch_by_two_workers_measures_once(place: Place, engine: MemoryEngine) -> None:
    job = running(place, engine)
    uses(engine, job, 0, 0)
    look(place)
    before = MeasuredCluster.objects.get().at
    idle.watch(place.cluster.pk)
    assert MeasuredCluster.objects.get().at == before


def test_replica_usage_without_change_is_not_written(place: Place, engine: MemoryEngine) -> None:
    job = running(place, engine)
    uses(engine, job, 50, 0)
    look(place)
    at = ReplicaUsage.objects.get().at
    uses(engine, job, 52, 1, cpu_s=1)
    idle.write(attempt_of(job), engine.uses[handle_of(job)], idle.Measured(5, interactive=False))
    assert ReplicaUsage.objects.get().at == at
    uses(engine, job, 90, 1)
    idle.write(attempt_of(job), engine.uses[handle_of(job)], idle.Measured(5, interactive=False))
    row = ReplicaUsage.objects.get()
    assert row.gpu_percents == [90, 1]
    assert [point[1] for point in row.points] == [50, 90]


def test_replica_usage_of_a_long_run_is_kept_whole_in_bounded_samples(
    place: Place, engine: MemoryEngine
) -> None:
    job = running(place, engine)
    begins = set()
    for number in range(MOST_SAMPLES + 20):
        uses(engine, job, 90 * (number % 2), 0)
        ReplicaUsage.objects.update(at=F("at") - timedelta(seconds=1))
        idle.write(attempt_of(job), engine.uses[handle_of(job)], idle.Measured(5, interactive=False))
        begins.add(ReplicaUsage.objects.get().samples[0].at)
    samples = ReplicaUsage.objects.get().samples
    assert len(samples) == MOST_SAMPLES
    assert begins == {samples[0].at}


def test_replica_usage_has_disk_and_network_as_rates_of_what_is_known(
    place: Place, engine: MemoryEngine
) -> None:
    job = running(place, engine)
    mib = 1 << 20
    for counts in ((0, 5 * mib), (0, 5 * mib + 9), (60 * mib, 35 * mib), (30 * mib, 65 * mib)):
        moved = Transferred(disk_read=counts[0], sent=counts[1])
        engine.uses[handle_of(job)] = (Use("worker", 0, 0, 512, (50,), moved),)
        look(place)
    rates = [point[4:] for point in ReplicaUsage.objects.get().points]
    unknown = [None] * 4
    assert rates[0] == unknown
    assert (
        [(round(each[0], 1), each[3] > 0, each[1:3]) for each in rates[1:]]
        == [
            (0.5, True, unknown[:2]),  # the second look moved less than a step, and was not written
            (0.0, True, unknown[:2]),  # what counted before has ended
        ]
    )


def look_twice(place: Place) -> None:
    look(place, 61 * MINUTE)
    look(place)


@pytest.mark.parametrize(
    "where", ["activity.of", "_warn", "transitions.record", "notifications.tell", "_release"]
)
def test_idle_warning_survives_worker_death_and_is_sent_once(
    where: str, place: Place, engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = running(place, engine)
    idles(place, engine, job)

    def die(*_given: object, **_named: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(f"jobs.scheduling.idle.{where}", die)
        with pytest.raises(KeyboardInterrupt):
            look_twice(place)
    assert NotificationEvent.objects.filter(kind="job.idle").exists() is (where == "_release")
    for _each in range(2):
        look(place)
    assert NotificationEvent.objects.filter(kind="job.idle").count() == 1
    assert kinds(job).count(Event.Kind.IDLE_WARNED) == 1
