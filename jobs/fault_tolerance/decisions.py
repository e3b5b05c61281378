"""The table by which a failed attempt is restarted, or its job ends."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, Self

from jobs.fault_tolerance.error_catalogue import Origin
from jobs.fault_tolerance.policy import FaultPolicy
from jobs.states import ReasonCode

PLATFORM_REASONS: Final = frozenset(
    {
        ReasonCode.IMAGE_FAILED,
        ReasonCode.MACHINE_RESTARTED,
        ReasonCode.NODE_LOST,
        ReasonCode.PORT_CONFLICT,
        ReasonCode.SANITY_CHECK_FAILED,
        ReasonCode.START_FAILED,
        ReasonCode.WRAPPER_LOST,
    }
)
"""Reasons that are the platform's, whatever the output says."""

OWN_REASONS: Final = frozenset(
    {
        ReasonCode.FOLDER_TOO_LARGE,
        ReasonCode.MOUNT_FAILED,
        ReasonCode.OUT_OF_MEMORY,
        ReasonCode.TOO_MANY_PORTS,
    }
)
"""Reasons that are the job's own: it would end the same way again."""

NODE_FAULTS: Final = frozenset({"gpu_ecc", "gpu_lost", ReasonCode.NODE_LOST, ReasonCode.WRAPPER_LOST})
"""Faults of the node itself: the next attempt runs on others."""

WINDOW: Final = timedelta(hours=24)
"""In so long a job is restarted at most CONSOLE_FAULT_RESTARTS_PER_DAY times, whatever its faults are."""

_VARYING: Final = re.compile(r"0x[0-9a-f]+|\d+", re.IGNORECASE)
_MOST: Final = 500


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an attempt failed: `code` of the catalogue or a reason, and its line, replica and node.

    `offset` is the line's first byte in the replica's log.
    """

    code: str
    origin: Origin
    line: str = ""
    role: str = ""
    index: int | None = None
    node: str = ""
    offset: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as it is stored."""
        return {**asdict(self), "line": self.line[:_MOST]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return a stored one."""
        return cls(**{**value, "origin": Origin(value["origin"])})

    @property
    def signature(self) -> tuple[str, str] | None:
        """Return the error's words without numbers and addresses, the same for equal ones; None for none."""
        words = _VARYING.sub("#", self.line[:_MOST])
        return (self.code, words) if words or self.code == ReasonCode.HANG else None


class Rule(StrEnum):
    """A row of the table."""

    SAME_ERROR = "same_error"
    WINDOW_SPENT = "window_spent"
    PLATFORM = "platform"
    OWN_ERROR = "own_error"
    RESTARTS_LEFT = "restarts_left"
    RESTARTS_SPENT = "restarts_spent"


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether the job is restarted, by which rule, and the number of restarts used so far."""

    restarts: bool
    rule: Rule
    used: int


def decide(
    policy: FaultPolicy, fault: Fault, earlier: Sequence[Fault], *, is_window_spent: bool = False
) -> Decision:
    """Decide about a failed attempt; `earlier` are the faults of those before it, in their order.

    `is_window_spent` says that the job was restarted as often as it may be in WINDOW.

    | the first that applies | is restarted |
    |---|---|
    | the same error, with the same words, so many times in a row | no |
    | an error of any origin, after so many restarts in 24 hours | no |
    | the platform's error | always |
    | an error of the job's own program, unless the policy restarts it | no |
    | restarts are left | yes |
    | none is left | no |
    """
    used = sum(1 for each in earlier if each.origin is not Origin.PLATFORM)
    row = [each.signature for each in (fault, *reversed(earlier))][: policy.same_errors]
    if len(row) == policy.same_errors and len(set(row)) == 1 and row[0] is not None:
        return Decision(restarts=False, rule=Rule.SAME_ERROR, used=used)
    if is_window_spent:
        return Decision(restarts=False, rule=Rule.WINDOW_SPENT, used=used)
    if fault.origin is Origin.PLATFORM:
        return Decision(restarts=True, rule=Rule.PLATFORM, used=used)
    if fault.origin is Origin.OWN and not policy.restarts_own:
        return Decision(restarts=False, rule=Rule.OWN_ERROR, used=used)
    is_left = used < policy.restarts
    return Decision(is_left, Rule.RESTARTS_LEFT if is_left else Rule.RESTARTS_SPENT, used)
