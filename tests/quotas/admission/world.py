"""A cluster in plain numbers, beside which admission is judged.  It shares no code with `quotas.admission`
but the values that go in and come out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from quotas.admission import (
    Account,
    Decision,
    HeldResources,
    Limits,
    Machine,
    Outcome,
    ResourceShape,
    Snapshot,
    Waiting,
    Why,
)
from quotas.amounts import Amounts, Part

Sums = Counter[str]
HOUR = 3600.0
FOR_ROOM = {Why.CAPACITY, Why.TURN, Why.COMING, Why.IDLE}


def sums(amounts: Amounts) -> Sums:
    """Amounts as counts by resource; `gpu` counts all types."""
    counted = Counter(
        {"cpu": amounts.cpu_milli, "memory": amounts.memory_mib, "gpu": sum(amounts.gpus.values())}
    )
    counted.update({f"gpu {kind}": count for kind, count in amounts.gpus.items() if kind})
    return counted


@dataclass
class Job:
    """Waiting while `placement` is None."""

    holder: str
    quota: int
    owner: int
    priority: int
    count: int
    each: Amounts
    since: float
    idle: str = ""
    declared_s: int | None = None
    placement: dict[str, Amounts] | None = None
    borrowed: bool = False
    running: bool = False
    coming: bool = False
    began: float = 0.0

    @property
    def wanted(self) -> Sums:
        return Counter({key: count * self.count for key, count in sums(self.each).items()})

    @property
    def held(self) -> Sums:
        return sum((sums(here) for here in (self.placement or {}).values()), Counter())


@dataclass
class Quota:
    workspace: int
    parent: int | None = None
    gpus: int | None = None
    jobs: int | None = None
    person_gpus: int | None = None
    preemptible: bool = False
    types: dict[str, int] = field(default_factory=dict)

    def limits(self) -> dict[str, int]:
        both = {key: most for key, most in (("gpu", self.gpus), ("jobs", self.jobs)) if most is not None}
        return both | {f"gpu {kind}": most for kind, most in self.types.items()}


@dataclass
class World:
    """Everything that there is, and a clock."""

    nodes: dict[str, Amounts]
    quotas: dict[int, Quota]
    jobs: dict[str, Job] = field(default_factory=dict)
    cordoned: set[str] = field(default_factory=set)
    now: float = 1_000_000.0
    made: int = 0

    # --- what happens ---

    def submit(self, quota: int, count: int, each: Amounts, **facts: object) -> Job:
        self.made += 1
        holder = f"j{self.made:04}"
        job = Job(holder, quota, self.made % 3, count=count, each=each, since=self.now, **facts)  # type: ignore[arg-type]
        self.jobs[holder] = job
        return job

    def held(self) -> list[Job]:
        return [job for job in self.jobs.values() if job.placement is not None]

    def waiting(self) -> list[Job]:
        return [job for job in self.jobs.values() if job.placement is None]

    def snapshot(self) -> Snapshot:
        return Snapshot(
            now=self.now,
            accounts={
                key: Account(
                    key,
                    str(key),
                    quota.workspace,
                    Limits(gpus=quota.gpus, jobs=quota.jobs, gpus_by_type=quota.types),
                    Limits(gpus=quota.person_gpus),
                    parent_id=quota.parent,
                    preemptible=quota.preemptible,
                )
                for key, quota in self.quotas.items()
            },
            machines=[
                Machine(name, has, name not in self.cordoned) for name, has in sorted(self.nodes.items())
            ],
            holdings=[_holding(job) for job in self.held()],
            waiting=[_waiting(job) for job in self.waiting()],
        )

    def apply(self, outcome: Outcome) -> None:
        for decision in outcome.decisions:
            if decision.admitted:
                job = self.jobs[decision.holder]
                job.placement, job.borrowed, job.began = dict(decision.placement), decision.borrowed, self.now
        for taken in outcome.taken_back:
            self.jobs[taken.holder].coming = True

    # --- what is true ---

    def used_in(self, quota: int) -> Sums:
        """What is held in a quota and below it, without what is borrowed."""
        return self._sum(job for job in self.held() if quota in self.above(job.quota) and not job.borrowed)

    def used_by(self, quota: int, owner: int) -> Sums:
        return self._sum(j for j in self.held() if (j.quota, j.owner) == (quota, owner) and not j.borrowed)

    def used_on(self, node: str) -> Sums:
        here = [job.placement.get(node, Amounts()) for job in self.held() if job.placement]
        return sum(map(sums, here), Counter())

    def _sum(self, jobs: Iterable[Job]) -> Sums:
        found: Sums = Counter()
        for job in jobs:
            found += job.held
            found["jobs"] += 1
        return found

    def above(self, quota: int) -> list[int]:
        found, at = [], quota
        while True:
            found.append(at)
            parent = self.quotas[at].parent
            if parent is None:
                return found
            at = parent

    def may_be_taken(self, job: Job) -> bool:
        return job.borrowed or self.quotas[job.quota].preemptible

    def limits(self) -> dict[str, tuple[Sums, dict[str, int]]]:
        """By name: what is used, and how much of it may be."""
        found: dict[str, tuple[Sums, dict[str, int]]] = {}
        for key, quota in self.quotas.items():
            found[f"quota {key}"] = self.used_in(key), quota.limits()
            if quota.person_gpus is not None:
                for owner in {job.owner for job in self.jobs.values()}:
                    found[f"person {key} {owner}"] = self.used_by(key, owner), {"gpu": quota.person_gpus}
        for name, has in self.nodes.items():
            room = {key: has_of for key, has_of in sums(has).items() if key != "gpu"}
            found[f"node {name}"] = self.used_on(name), room
        return found

    # --- the order, as docs/quotas.md tells it ---

    def order(self, decisions: dict[str, Decision]) -> list[str]:
        """In which order the requests have to come, given what became of each."""
        everything = sum((sums(has) for has in self.nodes.values()), Counter())
        has: dict[int, Sums] = {quota.workspace: Counter() for quota in self.quotas.values()}
        for job in self.held():
            has[self.quotas[job.quota].workspace] += job.held
        told: list[str] = []
        first = [
            job for job in self.waiting() if job.idle != "force" and not self.quotas[job.quota].preemptible
        ]
        last = [job for job in self.waiting() if job not in first]
        started: list[Job] = []
        left = list(first)
        while left:
            job = min(left, key=lambda job: self._place(job, has, everything))
            left.remove(job)
            if job.idle == "accept" and self._beyond(job, started):
                last.append(job)
                continue
            if job.idle == "accept" and self._borrows(decisions[job.holder]):
                last.append(job)
                continue
            self._tell(job, decisions, has, told)
            if decisions[job.holder].admitted:
                started.append(job)
        while last:
            job = min(last, key=lambda job: self._place(job, has, everything))
            last.remove(job)
            self._tell(job, decisions, has, told)
        return told

    def _place(self, job: Job, has: dict[int, Sums], everything: Sums) -> tuple[float, float, str]:
        """The smallest is next."""
        mine = has[self.quotas[job.quota].workspace]
        shares = [mine[key] / everything[key] for key in ("cpu", "memory", "gpu") if everything[key]]
        share = min(1.0, max(shares, default=0.0))
        return (-(job.priority + (self.now - job.since) / HOUR - 2 * share), job.since, job.holder)

    def _tell(self, job: Job, decisions: dict[str, Decision], has: dict[int, Sums], told: list[str]) -> None:
        told.append(job.holder)
        decision = decisions[job.holder]
        if decision.admitted or decision.why in FOR_ROOM:
            has[self.quotas[job.quota].workspace] += job.wanted

    def _borrows(self, decision: Decision) -> bool:
        """Whether it stood with the borrowers: what is left of its quota is kept for others."""
        return decision.borrowed or decision.why is Why.IDLE

    def _beyond(self, job: Job, started: list[Job]) -> bool:
        """Whether it passes a limit beside what is held, and what started in this pass."""
        if self.quotas[job.quota].person_gpus is not None:
            mine = [each for each in started if (each.quota, each.owner) == (job.quota, job.owner)]
            held = self.used_by(job.quota, job.owner)["gpu"] + sum(each.wanted["gpu"] for each in mine)
            if job.wanted["gpu"] and held + job.wanted["gpu"] > (self.quotas[job.quota].person_gpus or 0):
                return True
        for key in self.above(job.quota):
            within = [each for each in started if key in self.above(each.quota)]
            used = self.used_in(key)
            used["gpu"] += sum(each.wanted["gpu"] for each in within)
            used["jobs"] += len(within)
            for resource, most in self.quotas[key].limits().items():
                more = job.wanted["gpu"] if resource == "gpu" else 1
                if more and used[resource] + more > most:
                    return True
        return False


_shapes: dict[tuple[int, int, int, str], ResourceShape] = {}


def _shape(job: Job) -> ResourceShape:
    key = (job.count, job.each.cpu_milli, job.each.memory_mib, str(sorted(job.each.gpus.items())))
    return _shapes.setdefault(key, ResourceShape((Part(job.count, job.each),)))


def _waiting(job: Job) -> Waiting:
    return Waiting(
        job.holder,
        job.quota,
        _shape(job),
        job.priority,
        job.since,
        job.owner,
        job.declared_s,
        job.idle,
    )


def _holding(job: Job) -> HeldResources:
    placement = job.placement or {}
    amounts = Amounts()
    for here in placement.values():
        amounts = amounts + here
    return HeldResources(
        job.holder,
        job.quota,
        amounts,
        tuple(placement.items()),
        owner_id=job.owner,
        priority=job.priority,
        since=job.began,
        borrowed=job.borrowed,
        running=job.running,
        coming=job.coming,
        ends_at=job.began + job.declared_s if job.declared_s else None,
        shape=_shape(job),
    )
