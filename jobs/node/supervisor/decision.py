"""Decisions about an attempt: when the counts of its replicas decide it, and how it ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from signal import Signals
from typing import Any, Self

from jobs import states
from jobs.node.supervisor.plan import PlannedReplica, Role
from jobs.node.wrapper.outcome import Cause, Exit, judge
from jobs.states import Params, Reason, ReasonCode, State


@dataclass(frozen=True, slots=True)
class Ended:
    """A replica and its end."""

    place: PlannedReplica
    exit: Exit

    def to_count(self) -> states.Replica:
        """As the verdict counts it."""
        return states.Replica(self.place.role.name, self.place.index, self.judge()[0])

    def judge(self) -> tuple[states.ReplicaState, Reason]:
        """Its state and why."""
        return judge(self.exit, self.place.role.memory_mib)


@dataclass(frozen=True, slots=True)
class Decision:
    """How the job ends."""

    state: State
    reason: Reason


def decide(roles: Sequence[Role], ended: Sequence[Ended]) -> Decision | None:
    """Return the decision of the ends so far; None while there is none.

    They are looked at one after the other, as they happened, so that a supervisor that was away comes
    to the verdict it would have come to.  Counts only grow, hence the search by halves.
    """
    if any(one.exit.cause is Cause.RESTART for one in ended):
        return Decision(State.FAILED, Reason(ReasonCode.MACHINE_RESTARTED))
    if states.verdict(roles, (one.to_count() for one in ended)).state is None:
        return None
    ordered = sorted(ended, key=lambda one: one.exit.at)
    few, many = 1, len(ordered)
    while few < many:
        middle = (few + many) // 2
        if states.verdict(roles, (one.to_count() for one in ordered[:middle])).state is None:
            few = middle + 1
        else:
            many = middle
    verdict = states.verdict(roles, (one.to_count() for one in ordered[:many]))
    return _describe(verdict, ordered[many - 1])


def _describe(verdict: states.Verdict, last: Ended) -> Decision:
    if verdict.state is State.FAILED:
        reason = last.judge()[1]
        where: Params = {"role": last.place.role.name, "index": last.place.index}
        return Decision(State.FAILED, Reason(reason.code, {**reason.params, **where}))
    if verdict.failed:
        counts = {"failed": verdict.failed, "total": verdict.total}
        return Decision(State.SUCCEEDED, Reason(ReasonCode.COMPLETED_WITH_FAILURES, counts))
    return Decision(State.SUCCEEDED, Reason(ReasonCode.COMPLETED))


@dataclass(frozen=True, slots=True)
class Ending:
    """How the attempt is to be told, and the signals that lead there.

    `steps` are (when, signal) in order; whatever is alive at `kill_at` is killed.
    """

    state: State
    code: ReasonCode
    params: Params
    steps: tuple[tuple[float, str], ...]
    kill_at: float

    @classmethod
    def load(cls, value: Mapping[str, Any]) -> Self:
        """Read it from JSON."""
        return cls(
            State(value["state"]),
            ReasonCode(value["code"]),
            value["params"],
            tuple((at, name) for at, name in value["steps"]),
            value["kill_at"],
        )

    def dump(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)

    @property
    def reason(self) -> Reason:
        """Why."""
        return Reason(self.code, self.params)

    def list_due_signals(self, now: float) -> list[Signals]:
        """Return the signals whose time has come."""
        return [signal_called(name) for at, name in self.steps if at <= now]

    def next_after(self, now: float) -> float:
        """Timers."""
        return min((at for at, _ in self.steps if at > now), default=self.kill_at)

    def no_later_than(self, other: Ending) -> Ending:
        """The same end, by the earlier of two deadlines."""
        if other.kill_at >= self.kill_at:
            return self
        return replace(self, steps=other.steps, kill_at=other.kill_at)


def plan_ending(state: State, reason: Reason, *, now: float, grace_s: float, signal: str = "TERM") -> Ending:
    """`signal` now, KILL after `grace_s` seconds; a signal that is only a warning is followed by TERM,
    with the last tenth of the time (at most 30 s) left for it.
    """
    kill_at = now + grace_s
    steps = [(now, signal)]
    if signal not in ("TERM", "KILL"):
        steps.append((kill_at - min(30.0, grace_s / 10), "TERM"))
    return Ending(state, reason.code, reason.params, tuple(steps), now if signal == "KILL" else kill_at)


def signal_called(name: str) -> Signals:
    """TERM → SIGTERM."""
    return Signals[f"SIG{name}"]
