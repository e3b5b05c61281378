"""Random histories of a cluster, judged in plain numbers after each pass of admission."""

from __future__ import annotations

import random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from quotas.admission import Outcome, Why, decide
from quotas.amounts import Amounts
from tests.quotas.admission.world import HOUR, Job, Quota, World

NODES = {
    "n1": Amounts(16_000, 64_000, {"A100": 8}),
    "n2": Amounts(16_000, 64_000, {"A100": 4}),
    "n3": Amounts(8_000, 32_000, {"P100": 4}),
    "n4": Amounts(8_000, 32_000),
}
HOPELESS = {Why.EXCEEDS_QUOTA, Why.EXCEEDS_CLUSTER, Why.NO_SUCH_GPU, Why.NO_NODES}
"""Why somebody may wait for ever."""

replicas = st.builds(
    lambda cores, gpus, kind: Amounts(cores * 1000, cores * 4000, {kind: gpus} if gpus else {}),
    st.integers(1, 4),
    st.integers(0, 4),
    st.sampled_from(["A100", "A100", "P100", ""]),
)


def judge(world: World, outcome: Outcome) -> None:
    """Everything that has to hold of one pass; `world` is as it was before, and as it becomes afterwards."""
    waiting = {job.holder: job for job in world.waiting()}
    decisions = {each.holder: each for each in outcome.decisions}
    assert sorted(waiting) == sorted(each.holder for each in outcome.decisions), "one decision for each"
    apart = {job.holder for job in waiting.values() if job.idle and decisions[job.holder].why in HOPELESS}
    order = [each.holder for each in outcome.decisions if each.holder not in apart]
    expected = [holder for holder in world.order(decisions) if holder not in apart]
    assert order == expected, "the order as documented"
    before = world.limits()
    held_before = {job.holder for job in world.held()}
    world.apply(outcome)
    for name, (used, limits) in world.limits().items():
        for resource, most in limits.items():
            was = before[name][0][resource] if name in before else 0
            assert used[resource] <= max(most, was), f"{name} {resource}: {was} → {used[resource]} of {most}"
    for holder, job in waiting.items():
        decision = decisions[holder]
        if decision.admitted:
            placed = job.held
            assert all(placed[key] == job.wanted[key] for key in ("cpu", "memory", "gpu")), (
                "all of it or nothing"
            )
            assert not world.cordoned & set(job.placement or ()), "nothing starts on a cordoned node"
            assert not job.borrowed or job.idle, "who did not allow it does not borrow"
    for taken in outcome.taken_back:
        assert taken.holder in held_before
        assert world.may_be_taken(world.jobs[taken.holder])
        assert decisions[taken.for_holder].why is Why.COMING


class Histories(RuleBasedStateMachine):
    """Whatever may happen to a cluster, in any order."""

    @initialize()
    def begin(self) -> None:
        self.world = World(
            nodes=dict(NODES),
            quotas={
                1: Quota(1, parent=9, gpus=6),
                2: Quota(2, parent=9, person_gpus=3),
                3: Quota(3, jobs=3),
                4: Quota(3, gpus=6, preemptible=True),
                9: Quota(9, gpus=10),
            },
        )

    def decide(self) -> None:
        judge(self.world, decide(self.world.snapshot()))

    def pick(self, number: int) -> Job | None:
        held = self.world.held()
        return held[number % len(held)] if held else None

    @rule(
        quota=st.sampled_from([1, 2, 3, 4]),
        count=st.integers(1, 3),
        each=replicas,
        priority=st.integers(1, 9),
        idle=st.sampled_from(["", "", "accept", "force"]),
        declared_s=st.sampled_from([None, 600, 7200]),
    )
    def submit(
        self, quota: int, count: int, each: Amounts, priority: int, idle: str, declared_s: int | None
    ) -> None:
        self.world.submit(quota, count, each, priority=priority, idle=idle, declared_s=declared_s)
        self.decide()

    @rule(number=st.integers(0, 99))
    def starts_to_run(self, number: int) -> None:
        if (job := self.pick(number)) is not None:
            job.running = True

    @rule(number=st.integers(0, 99))
    def stop(self, number: int) -> None:
        if (job := self.pick(number)) is not None:
            job.coming = True
            self.decide()

    @rule(number=st.integers(0, 99), again=st.booleans())
    def finish(self, number: int, again: bool) -> None:
        """It ends; what was taken back may wait again, as a new attempt."""
        if (job := self.pick(number)) is not None:
            del self.world.jobs[job.holder]
            if again and self.world.may_be_taken(job):
                self.world.submit(job.quota, job.count, job.each, priority=job.priority, idle=job.idle)
            self.decide()

    @rule(number=st.integers(0, 99))
    def withdraw(self, number: int) -> None:
        waiting = self.world.waiting()
        if waiting:
            del self.world.jobs[waiting[number % len(waiting)].holder]
            self.decide()

    @rule(number=st.integers(0, 99))
    def shrink(self, number: int) -> None:
        job = self.pick(number)
        if job is not None and job.placement and len(job.placement) > 1:
            job.placement.pop(min(job.placement))
            self.decide()

    @rule(quota=st.sampled_from([1, 4, 9]), gpus=st.one_of(st.none(), st.integers(0, 12)))
    def edit(self, quota: int, gpus: int | None) -> None:
        self.world.quotas[quota].gpus = gpus
        self.decide()

    @rule(name=st.sampled_from(sorted(NODES)))
    def cordon_or_not(self, name: str) -> None:
        self.world.cordoned ^= {name}
        self.decide()

    @rule(name=st.sampled_from(sorted(NODES)))
    def lose_or_find(self, name: str) -> None:
        if self.world.nodes.pop(name, None) is None:
            self.world.nodes[name] = NODES[name]
        self.decide()

    @rule(hours=st.sampled_from([0.1, 1.0, 5.0]))
    def wait(self, hours: float) -> None:
        self.world.now += hours * HOUR
        self.decide()

    @precondition(lambda self: len(self.world.waiting()) > 2)
    @rule()
    def settle(self) -> None:
        """When everything that holds something ends in turn, everything that can start has started."""
        world = self.world
        for _each in range(4 * len(world.jobs) + 4):
            outcome = decide(world.snapshot())
            judge(world, outcome)
            if not world.held():
                assert {each.why for each in outcome.decisions} <= HOPELESS
                for job in world.waiting():
                    del world.jobs[job.holder]
                return
            oldest = min(world.held(), key=lambda job: (not job.coming, job.began, job.holder))
            del world.jobs[oldest.holder]
        raise AssertionError("it does not settle")


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=500, stateful_step_count=25, deadline=None)


def test_low_priority_gang_starts_despite_endless_higher_priority_jobs() -> None:
    """A gang of priority 1 that needs everything, in more of priority 9 than the cluster can ever do.

    Eight levels of priority and two of fairness are ten hours: whoever came later than that starts later.
    """
    chance = random.Random(5)
    world = World({"n1": Amounts(64_000, 256_000, {"A100": 8})}, {1: Quota(1), 2: Quota(2)})
    gang = world.submit(1, 4, Amounts(1000, 4000, {"A100": 2}), priority=1)
    ends: dict[str, float] = {}
    began = world.now
    while gang.placement is None:
        assert world.now < began + 100 * HOUR
        world.now += HOUR / 4
        world.submit(2, 1, Amounts(1000, 4000, {"A100": chance.randint(1, 4)}), priority=9)
        for job in world.held():
            assert job.since <= began + 10 * HOUR
            if ends.setdefault(job.holder, world.now + chance.uniform(0.5, 3) * HOUR) <= world.now:
                del world.jobs[job.holder]
        world.apply(decide(world.snapshot()))
