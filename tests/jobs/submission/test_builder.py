"""What is reserved is what is asked for: by the file, the panel, the ledger and the engine alike."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from jobs import submission
from jobs.dialects.base import Parsed
from jobs.dialects.document import Document
from jobs.models import Attempt, Job
from jobs.scheduling import admission, reconcile
from jobs.spec import JobSpec, Resources, RoleSpec
from jobs.states import State
from jobs.submission import builder
from jobs.submission.checks import preview
from quotas.amounts import Amounts, total
from quotas.limits.job_limits import limits_for
from quotas.models import GpuType, Node, Quota, Request, Reservation
from tests.factories import make_cluster, make_quota, make_spec, make_user
from tests.jobs.engine import MemoryEngine

RESOURCES = st.builds(
    Resources,
    cpu_milli=st.integers(1, 4000),
    memory_mib=st.integers(1, 4096),
    gpus=st.integers(0, 2),
    gpu_type=st.sampled_from(["", "A100", "nvidia-a100", "P100"]),
)
ROLES = st.lists(st.tuples(RESOURCES, st.integers(1, 3)), min_size=1, max_size=4)


def spec_of(wanted: list[tuple[Resources, int]]) -> JobSpec:
    return make_spec(
        roles=tuple(
            RoleSpec(name=f"r{number}", command="true", replicas=count, resources=each)
            for number, (each, count) in enumerate(wanted)
        )
    )


def site() -> Quota:
    GpuType.objects.get_or_create(name="A100", defaults={"aliases": ["nvidia-a100"]})
    cluster = make_cluster()
    Node.objects.create(
        cluster=cluster, name="n", cpu_milli=10**6, memory_mib=10**6, gpus={"A100": 64, "P100": 64}
    )
    return make_quota(cluster=cluster)


class Amounted(TestCase):
    @given(ROLES)
    @settings(max_examples=40, deadline=None)
    def test_preview_amounts_match_reservation_and_submission(
        self, wanted: list[tuple[Resources, int]]
    ) -> None:
        spec, quota, user = spec_of(wanted), site(), make_user(admin=True)
        shown = preview.preview(user, "openpai-v1", spec, limits_for(user, quota)).amounts
        job = submission.store(user, Document("{}", "openpai-v1").with_parsed(Parsed(spec, text="{}")), quota)
        [request] = Request.objects.filter(quota=quota)
        asked = total(Amounts.from_json(each).times(count) for count, each in request.parts)
        assert asked == shown
        admission.admit(quota.cluster_id)
        [reservation] = Reservation.objects.filter(quota=quota)
        held = Amounts.from_json(reservation.amounts)
        assert (held.cpu_milli, held.memory_mib, held.gpu_count) == (
            shown.cpu_milli,
            shown.memory_mib,
            shown.gpu_count,
        )
        sent = builder.build_submission(user, quota, spec, "k", job.public_id, 1).spec
        assert sum(role.replicas * role.resources.cpu_milli for role in sent.roles) == held.cpu_milli
        assert sum(role.replicas * role.resources.memory_mib for role in sent.roles) == held.memory_mib
        assert sum(role.replicas * role.resources.gpus for role in sent.roles) == held.gpu_count


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> MemoryEngine:
    made = MemoryEngine()
    monkeypatch.setattr(reconcile, "backend_for", lambda _cluster: made)
    return made


@pytest.mark.django_db
def test_submission_exceeding_reservation_is_not_sent(engine: MemoryEngine) -> None:
    quota, user = site(), make_user(admin=True)
    spec = spec_of([(Resources(cpu_milli=3000), 2)])
    job = submission.store(user, Document("{}", "openpai-v1").with_parsed(Parsed(spec, text="{}")), quota)
    less: list[Any] = [[1, Amounts(1000, 1024).to_json()]]
    Request.objects.update(parts=less)
    admission.admit(quota.cluster_id)
    attempt = Attempt.objects.get(job=job)
    assert not reconcile.send(quota.cluster_id)
    assert engine.starts == {}
    job = Job.objects.get(pk=job.pk)
    assert job.state == State.QUEUED
    assert not Reservation.objects.filter(active=True).exists()
    assert Request.objects.get().parts == [[2, Amounts(3000, 1024).to_json()]]
    Request.objects.update(not_before=None)
    reconcile.drain(quota.cluster_id)
    assert engine.starts == {attempt.key: 1}
    assert Amounts.from_json(Reservation.objects.get().amounts).cpu_milli == 6000
