"""Suggested actions: changes that would start a waiting job now.

Each is tried on the resources that no other job holds or waits for before it is offered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from jobs import submission
from jobs.lifecycle.pending_reasons import verdict_in
from jobs.models import Job, JobFile
from jobs.spec import JobSpec
from jobs.submission.checks import feasibility
from jobs.submission.checks.preview import Preview
from quotas.admission import ResourceShape, Waiting, Why, queue_snapshot, snapshot
from quotas.admission.free_capacity import NodeCapacity, Pool
from quotas.admission.placement import Placer
from quotas.amounts import Amounts
from quotas.models import Cluster, Quota, User

MOST: Final = 4
MOST_QUOTAS: Final = 8
UNHELPED: Final = frozenset(
    {Why.HELD, Why.OTHERS, Why.NOT_YET, Why.OUTBID, Why.NO_NODES, Why.FROZEN, Why.MAINTENANCE}
)
"""Reasons that no change of the job's size resolves."""


@dataclass(frozen=True, slots=True)
class SuggestedAction:
    """A change of a job: `kind` is `replicas`, `gpus`, `gpu_type` or `quota`, `value` its new value."""

    kind: str
    value: str


class NoSuchChange(Exception):
    """The job can't be changed so."""


def apply_change(spec: JobSpec, remedy: SuggestedAction) -> JobSpec:
    """Return the job with the change; another quota leaves it as it is.  Raises NoSuchChange."""
    if remedy.kind == "quota":
        return spec
    if remedy.kind == "gpu_type":
        return feasibility.change(spec, remedy.kind, remedy.value)
    if (
        len(spec.roles) != 1
        or not remedy.value.isdecimal()
        or not 0 < int(remedy.value) <= _current(spec, remedy.kind)
    ):
        raise NoSuchChange(remedy.kind)
    role, number = spec.roles[0], int(remedy.value)
    if remedy.kind == "replicas":
        return spec.model_copy(update={"roles": (role.model_copy(update={"replicas": number}),)})
    return spec.model_copy(update={"roles": (feasibility.resize(role, gpus=number),)})


def _current(spec: JobSpec, kind: str) -> int:
    role = spec.roles[0]
    return {"replicas": role.replicas, "gpus": role.resources.gpus}.get(kind, 0)


def suggest(user: User, job: Job) -> list[SuggestedAction]:
    """Return the changes that would start the waiting job now, the smallest first; at most MOST."""
    queue = queue_snapshot.queue_of(job.cluster_id)
    verdict = verdict_in({job.cluster_id: queue}, job)
    if verdict is None or verdict.why in UNHELPED:
        return []
    ahead = queue.holders_of_capacity(verdict.holder)
    return _search(user, job.quota, JobFile.objects.get(job=job).spec, queue.room, ahead)


def suggest_for_preview(user: User, asked: Preview) -> list[SuggestedAction]:
    """Return the changes that would start a job that is not submitted yet; at most MOST."""
    verdict = asked.outcome.verdict
    if verdict is None or verdict.why in UNHELPED or asked.by_engine:
        return []
    ahead = queue_snapshot.queue_of(asked.quota.cluster_id).holders_of_capacity()
    return _search(user, asked.quota, asked.spec, asked.outcome.room, ahead)


def _search(
    user: User,
    quota: Quota,
    spec: JobSpec,
    room: Sequence[tuple[str, Amounts]],
    ahead: Collection[str],
) -> list[SuggestedAction]:
    here = _ClusterForecast(quota.cluster, room, ahead, user)
    found = [*here.smaller(quota.pk, spec), *here.of_other_types(quota.pk, spec)]
    found += _elsewhere(user, quota, spec, here)
    return found[:MOST]


def _elsewhere(
    user: User, here_now: Quota, spec: JobSpec, here: _ClusterForecast
) -> Iterator[SuggestedAction]:
    forecasts = {here_now.cluster_id: here}
    for quota in submission.quotas_open_to(user).exclude(pk=here_now.pk)[:MOST_QUOTAS]:
        forecast = forecasts.get(quota.cluster_id)
        if forecast is None:
            queue = queue_snapshot.queue_of(quota.cluster_id)
            ahead = queue.holders_of_capacity()
            forecast = forecasts[quota.cluster_id] = _ClusterForecast(quota.cluster, queue.room, ahead, user)
        if forecast.starts(quota.pk, spec):
            yield SuggestedAction("quota", submission.target_address(quota))


class _ClusterForecast:
    """The free resources of a cluster, and its limits."""

    def __init__(
        self, cluster: Cluster, room: Sequence[tuple[str, Amounts]], ahead: Collection[str], user: User
    ) -> None:
        self._room = room
        self._user = user
        self._usage = snapshot.load_quota_usage_behind(cluster, ahead)

    def starts(self, quota_id: int, spec: JobSpec) -> bool:
        """Tell whether the job would start now, at the end of the queue."""
        shape = ResourceShape(tuple(submission.parts_of(spec)))
        request = Waiting("", quota_id, shape, owner_id=self._user.pk)
        if self._usage.never(request) is not None or self._usage.refuses(request) is not None:
            return False
        if self._usage.find_reserved_limit(request) is not None:
            return False
        pool = Pool(NodeCapacity(name, amounts) for name, amounts in self._room)
        left = self._usage.left_of_types(request, claims=True)
        return Placer().place(pool, shape, left) is not None

    def smaller(self, quota_id: int, spec: JobSpec) -> Iterator[SuggestedAction]:
        """Yield the most replicas, or GPUs of the one replica, that would start."""
        if len(spec.roles) != 1:
            return
        kind = "replicas" if spec.roles[0].replicas > 1 else "gpus"
        low, high = 0, _current(spec, kind)
        while high - low > 1:  # fewer always fit where more do
            middle = (low + high) // 2
            if self.starts(quota_id, apply_change(spec, SuggestedAction(kind, str(middle)))):
                low = middle
            else:
                high = middle
        if low:
            yield SuggestedAction(kind, str(low))

    def of_other_types(self, quota_id: int, spec: JobSpec) -> Iterator[SuggestedAction]:
        """Yield the same job on GPUs of other types."""
        wanted = {role.resources.gpu_type for role in spec.roles if role.resources.gpus}
        if len(wanted) != 1 or "" in wanted:
            return
        for kind in sorted({kind for _node, amounts in self._room for kind in amounts.gpus} - wanted):
            if self.starts(quota_id, apply_change(spec, SuggestedAction("gpu_type", kind))):
                yield SuggestedAction("gpu_type", kind)
