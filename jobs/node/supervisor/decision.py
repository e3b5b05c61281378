"""When the counts of the replicas decide the job, by which of them, and how that is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobs import states
from jobs.node.supervisor.plan import Place, Role
from jobs.node.wrapper.outcome import Cause, Exit, judge
from jobs.states import Params, Reason, ReasonCode, State


@dataclass(frozen=True, slots=True)
class Ended:
    """A replica and its end."""

    place: Place
    exit: Exit

    def counted(self) -> states.Replica:
        """As the verdict counts it."""
        return states.Replica(self.place.role.name, self.place.index, self.judged()[0])

    def judged(self) -> tuple[states.TaskState, Reason]:
        """Its state and why."""
        return judge(self.exit, self.place.role.memory_mib)


@dataclass(frozen=True, slots=True)
class Decision:
    """How the job ends."""

    state: State
    reason: Reason


def decide(roles: Sequence[Role], ended: Sequence[Ended]) -> Decision | None:
    """What the ends so far decide; None while they decide nothing.

    They are looked at one after the other, as they happened, so that a supervisor that was away comes
    to the verdict it would have come to.  Counts only grow, hence the search by halves.
    """
    if any(one.exit.cause is Cause.RESTART for one in ended):
        return Decision(State.FAILED, Reason(ReasonCode.MACHINE_RESTARTED))
    if states.verdict(roles, (one.counted() for one in ended)).state is None:
        return None
    ordered = sorted(ended, key=lambda one: one.exit.at)
    few, many = 1, len(ordered)
    while few < many:
        middle = (few + many) // 2
        if states.verdict(roles, (one.counted() for one in ordered[:middle])).state is None:
            few = middle + 1
        else:
            many = middle
    verdict = states.verdict(roles, (one.counted() for one in ordered[:many]))
    return _told(verdict, ordered[many - 1])


def _told(verdict: states.Verdict, last: Ended) -> Decision:
    if verdict.state is State.FAILED:
        reason = last.judged()[1]
        where: Params = {"role": last.place.role.name, "index": last.place.index}
        return Decision(State.FAILED, Reason(reason.code, {**reason.params, **where}))
    if verdict.failed:
        counts = {"failed": verdict.failed, "total": verdict.total}
        return Decision(State.SUCCEEDED, Reason(ReasonCode.COMPLETED_WITH_FAILURES, counts))
    return Decision(State.SUCCEEDED, Reason(ReasonCode.COMPLETED))
