"""What would start a waiting job now: each tried on what nobody holds or waits for before it is offered."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from jobs import submission
from jobs.lifecycle.waiting import verdict_in
from jobs.models import Job, JobFile
from jobs.spec import JobSpec
from jobs.submission.preview import Preview
from quotas.admission import Shape, Waiting, Why, snapshot, standings
from quotas.admission.placement import Placer
from quotas.admission.rooms import Pool, Room
from quotas.amounts import Amounts
from quotas.models import Cluster, Quota, User

MOST: Final = 4
MOST_QUOTAS: Final = 8
UNHELPED: Final = frozenset(
    {Why.HELD, Why.OTHERS, Why.NOT_YET, Why.OUTBID, Why.NO_NODES, Why.FROZEN, Why.MAINTENANCE}
)
"""Nothing about the job's size would start these."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change: `kind` is `replicas`, `gpus`, `gpu_type` or `quota`; `value` what it becomes."""

    kind: str
    value: str


class NoSuchChange(Exception):
    """The job can't be changed so."""


def changed(spec: JobSpec, remedy: Remedy) -> JobSpec:
    """The job as the remedy has it; of another quota the job itself says nothing.  Raises NoSuchChange."""
    if remedy.kind == "quota":
        return spec
    role = spec.roles[0]
    if remedy.kind == "gpu_type":
        roles = [
            each.model_copy(
                update={"resources": each.resources.model_copy(update={"gpu_type": remedy.value})}
            )
            if each.resources.gpus
            else each
            for each in spec.roles
        ]
        return spec.model_copy(update={"roles": tuple(roles)})
    if (
        len(spec.roles) != 1
        or not remedy.value.isdecimal()
        or not 0 < int(remedy.value) <= _now(spec, remedy.kind)
    ):
        raise NoSuchChange(remedy.kind)
    if remedy.kind == "replicas":
        role = role.model_copy(update={"replicas": int(remedy.value)})
    else:
        role = role.model_copy(
            update={"resources": role.resources.model_copy(update={"gpus": int(remedy.value)})}
        )
    return spec.model_copy(update={"roles": (role,)})


def _now(spec: JobSpec, kind: str) -> int:
    role = spec.roles[0]
    return {"replicas": role.replicas, "gpus": role.resources.gpus}.get(kind, 0)


def remedies(user: User, job: Job) -> list[Remedy]:
    """What would start the waiting job now, the smallest change first; at most MOST."""
    queue = standings.queue_of(job.cluster_id)
    verdict = verdict_in({job.cluster_id: queue}, job)
    if verdict is None or verdict.why in UNHELPED:
        return []
    ahead = queue.keeping(verdict.holder)
    return _found(user, job.quota, JobFile.objects.get(job=job).spec, queue.room, ahead)


def of_preview(user: User, asked: Preview) -> list[Remedy]:
    """What would start a job now that is not submitted yet; at most MOST."""
    verdict = asked.trial.verdict
    if verdict is None or verdict.why in UNHELPED or asked.by_engine:
        return []
    ahead = standings.queue_of(asked.quota.cluster_id).keeping()
    return _found(user, asked.quota, asked.spec, asked.trial.room, ahead)


def _found(
    user: User,
    quota: Quota,
    spec: JobSpec,
    room: Sequence[tuple[str, Amounts]],
    ahead: Collection[str],
) -> list[Remedy]:
    here = _Trial(quota.cluster, room, ahead, user)
    found = [*here.smaller(quota.pk, spec), *here.of_other_types(quota.pk, spec)]
    found += _elsewhere(user, quota, spec, here)
    return found[:MOST]


def _elsewhere(user: User, here_now: Quota, spec: JobSpec, here: _Trial) -> Iterator[Remedy]:
    trials = {here_now.cluster_id: here}
    for quota in submission.quotas_open_to(user).exclude(pk=here_now.pk)[:MOST_QUOTAS]:
        trial = trials.get(quota.cluster_id)
        if trial is None:
            queue = standings.queue_of(quota.cluster_id)
            trial = trials[quota.cluster_id] = _Trial(quota.cluster, queue.room, queue.keeping(), user)
        if trial.starts(quota.pk, spec):
            yield Remedy("quota", submission.address_of(quota))


class _Trial:
    """What is left over on a cluster, and its ceilings."""

    def __init__(
        self, cluster: Cluster, room: Sequence[tuple[str, Amounts]], ahead: Collection[str], user: User
    ) -> None:
        self._room = room
        self._user = user
        self._books = snapshot.books_behind(cluster, ahead)

    def starts(self, quota_id: int, spec: JobSpec) -> bool:
        """Whether the job would start now, behind everybody."""
        shape = Shape(tuple(submission.parts_of(spec)))
        request = Waiting("", quota_id, shape, owner_id=self._user.pk)
        if self._books.never(request) is not None or self._books.refuses(request) is not None:
            return False
        if self._books.keeps_for_others(request) is not None:
            return False
        pool = Pool(Room(name, amounts) for name, amounts in self._room)
        left = self._books.left_of_types(request, claims=True)
        return Placer().place(pool, shape, left) is not None

    def smaller(self, quota_id: int, spec: JobSpec) -> Iterator[Remedy]:
        """The most replicas, or GPUs of the one replica, that would start."""
        if len(spec.roles) != 1:
            return
        kind = "replicas" if spec.roles[0].replicas > 1 else "gpus"
        low, high = 0, _now(spec, kind)
        while high - low > 1:  # fewer always fit where more do
            middle = (low + high) // 2
            if self.starts(quota_id, changed(spec, Remedy(kind, str(middle)))):
                low = middle
            else:
                high = middle
        if low:
            yield Remedy(kind, str(low))

    def of_other_types(self, quota_id: int, spec: JobSpec) -> Iterator[Remedy]:
        """The same job on GPUs of another type."""
        wanted = {role.resources.gpu_type for role in spec.roles if role.resources.gpus}
        if len(wanted) != 1 or "" in wanted:
            return
        for kind in sorted({kind for _node, amounts in self._room for kind in amounts.gpus} - wanted):
            if self.starts(quota_id, changed(spec, Remedy("gpu_type", kind))):
                yield Remedy("gpu_type", kind)
