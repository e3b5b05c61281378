"""The decision that an attempt ends, and what each wrapper then does about its own replica.

Written once, before anybody acts on it, so that whoever carries on after a crash carries on with the
same decision.  Times are seconds since the boot (CLOCK_MONOTONIC), the same for all processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from signal import Signals
from typing import Any, Self

from jobs.states import Params, Reason, ReasonCode, State


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
        """From JSON."""
        return cls(
            State(value["state"]),
            ReasonCode(value["code"]),
            value["params"],
            tuple((at, name) for at, name in value["steps"]),
            value["kill_at"],
        )

    def dump(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @property
    def reason(self) -> Reason:
        """Why."""
        return Reason(self.code, self.params)

    def due(self, now: float) -> list[Signals]:
        """The signals whose time has come."""
        return [signal_called(name) for at, name in self.steps if at <= now]

    def next_after(self, now: float) -> float:
        """When there is something to do next."""
        return min((at for at, _ in self.steps if at > now), default=self.kill_at)

    def no_later_than(self, other: Ending) -> Ending:
        """The same end, by the earlier of two deadlines."""
        if other.kill_at >= self.kill_at:
            return self
        return replace(self, steps=other.steps, kill_at=other.kill_at)


def ending(state: State, reason: Reason, *, now: float, grace_s: float, signal: str = "TERM") -> Ending:
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
