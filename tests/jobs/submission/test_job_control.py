"""One more hour: who may, how far, and what the engine is told."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs import submission
from jobs.backends.base import Handle
from jobs.jobtemplates import SHIPPED, fill
from jobs.models import Attempt, Event, Job, TemplateUse
from jobs.scheduling import reconcile
from jobs.states import EndKind
from jobs.submission import job_control
from quotas.models import Cluster, Membership, Quota, Request, Role, User
from tests.jobs.conftest import Place, attempt_of
from tests.jobs.engine import MemoryEngine

pytestmark = pytest.mark.django_db

HOUR = 3600


def running(place: Place, engine: MemoryEngine, hours: int = 4, template: str = "shell") -> Job:
    """A job from a template, started."""
    document = fill(SHIPPED[template], {"gpus": 0, "hours": hours})
    job = submission.submit(place.owner, document, template=template).job
    reconcile.drain(place.cluster.pk)
    engine.run(Handle(attempt_of(job).handle))
    reconcile.observe(place.cluster.pk)
    job.refresh_from_db()
    assert job.state == "RUNNING"
    return job


class ExtendingEngine(MemoryEngine):
    """One that can move the end of what runs."""

    def extend(self, handle: Handle, limit_s: int) -> None:
        self._answer()
        self.orders.append((handle, "extend", limit_s))


@pytest.fixture
def able(engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch) -> ExtendingEngine:
    from tests.jobs import engine as memory  # noqa: PLC0415  the module that has the engine in use

    made = ExtendingEngine()
    monkeypatch.setattr(memory, "running", made)
    return made


def test_extension_is_sent_to_engine_once_with_total_limit(place: Place, able: ExtendingEngine) -> None:
    job = running(place, able)
    job_control.extend(place.owner, job)
    job_control.extend(place.owner, job)
    reconcile.observe(place.cluster.pk)
    reconcile.observe(place.cluster.pk)
    assert able.orders == [(Handle(attempt_of(job).handle), "extend", 6 * HOUR)]
    assert job_control.limit_s(job, 4 * HOUR) == 6 * HOUR
    assert Request.objects.get().declared_s == 6 * HOUR
    event = Event.objects.filter(job=job, kind="extended").latest("pk")
    assert (event.actor, event.params) == (place.owner, {"seconds": HOUR})


def test_extension_for_unreachable_engine_is_sent_later(place: Place, able: ExtendingEngine) -> None:
    job = running(place, able)
    job_control.extend(place.owner, job)
    able.away = True
    reconcile.observe(place.cluster.pk)
    able.away = False
    reconcile.observe(place.cluster.pk)
    assert [limit for _handle, _word, limit in able.orders] == [5 * HOUR]


def test_extension_unsupported_by_engine_is_withdrawn_with_event(place: Place, engine: MemoryEngine) -> None:
    job = running(place, engine)
    job_control.extend(place.owner, job)
    reconcile.observe(place.cluster.pk)
    assert attempt_of(job).extended_s == 0
    assert Event.objects.filter(job=job, kind="not_extended").exists()
    assert Cluster.objects.get().trouble == ""


def test_extension_is_limited_to_owner_of_running_job(place: Place, able: ExtendingEngine) -> None:
    job = running(place, able)
    other = User.objects.create_superuser("root")
    Membership.objects.create(workspace=place.workspace, user=other, role=Role.ADMIN)
    assert (job_control.left_s(other, job), job_control.left_s(place.owner, job) > 0) == (0, True)
    with pytest.raises(job_control.NotExtended):
        job_control.extend(other, job)
    Attempt.objects.update(end_kind=EndKind.USER_STOP)
    with pytest.raises(job_control.NotExtended):
        job_control.extend(place.owner, job)
    assert attempt_of(job).extended_s == 0


def test_extension_beyond_template_limit_is_refused(place: Place, able: ExtendingEngine) -> None:
    job = running(place, able, hours=167)
    job_control.extend(place.owner, job)
    with pytest.raises(job_control.NotExtended):
        job_control.extend(place.owner, job)
    assert job_control.limit_s(job, 167 * HOUR) == 168 * HOUR


def test_extension_is_offered_only_for_interactive_jobs(place: Place, able: ExtendingEngine) -> None:
    for job in (running(place, able, template="helloworld"), running(place, able, template="shell")):
        interactive = TemplateUse.objects.get(job=job).shipped == "shell"
        assert (job_control.left_s(place.owner, job) > 0) is interactive
    TemplateUse.objects.all().delete()
    assert job_control.left_s(place.owner, Job.objects.latest("pk")) == 0


def test_extension_with_exhausted_gpu_hours_is_refused(place: Place, able: ExtendingEngine) -> None:
    job = running(place, able)
    Quota.objects.update(gpu_hours=0)
    job_control.extend(place.owner, job)  # it has no GPU
    Job.objects.update(gpus=1)
    with pytest.raises(job_control.NotExtended):
        job_control.extend(place.owner, job)
    assert timedelta(seconds=attempt_of(job).extended_s) == timedelta(hours=1)
