"""The policy of a job's fault tolerance, by the vendors' arguments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from jobs.dialects import fault_arguments
from jobs.dialects.fault_arguments import Vendor
from jobs.spec import JobSpec

SAME_ERRORS: Final = 3
"""The same error so many times in a row ends the job, where the arguments say no number."""

HANG_S: Final = 1800
"""The time without output that counts as a hang, where the arguments say none (AIMaster's default)."""

MOST_PATTERNS: Final = 20
LONGEST_PATTERN: Final = 500


@dataclass(frozen=True, slots=True)
class FaultPolicy:
    """Policy of a job about faults.

    `restarts` after errors that are not the platform's; `restarts_own` includes errors of the job's own
    program.  A job whose replicas have all written nothing for `hang_s` hangs (None: it is not looked for),
    but not before `startup_s`.  A line with one of `patterns` is a fault.
    """

    restarts: int = 0
    restarts_own: bool = False
    hang_s: int | None = None
    startup_s: int = 0
    patterns: tuple[str, ...] = ()
    same_errors: int = SAME_ERRORS

    @property
    def watches(self) -> bool:
        """Tell whether the job's output has to be watched while it runs."""
        return self.hang_s is not None or bool(self.patterns)


def policy_of(spec: JobSpec) -> FaultPolicy | None:
    """Return the policy of a job; None where it has no fault tolerance.  Wrong values count as not given."""
    if not spec.fault_tolerance.enabled:
        return None
    given: dict[str, list[str]] = defaultdict(list)
    for known, value in fault_arguments.list_known(spec.fault_tolerance.arguments):
        if known.fits(value):
            given[known.name].append(value)
    arguments = _Arguments(given)
    is_aihc = fault_arguments.are_of(Vendor.AIHC, spec.fault_tolerance.arguments)
    return _of_aihc(arguments) if is_aihc else _of_dlc(arguments)


def _of_dlc(arguments: _Arguments) -> FaultPolicy:
    detects = arguments.is_on("enable-job-hang-detection") or arguments.is_on("enable-log-hang-detection")
    interval = arguments.number("log-hang-interval-in-seconds", arguments.number("job-hang-interval", HANG_S))
    restarts = arguments.number("max-num-of-job-restart", 3) if arguments.is_on("enable-job-restart") else 0
    return FaultPolicy(
        restarts=restarts,
        restarts_own=arguments.last("fault-tolerant-policy") == "OnFailure",
        hang_s=max(1, interval) if detects else None,
        same_errors=arguments.number("max-num-of-same-error", SAME_ERRORS) or SAME_ERRORS,
    )


def _of_aihc(arguments: _Arguments) -> FaultPolicy:
    """Return AIHC's: its retries are unconditional, so that the program's own errors count among them."""
    minutes = arguments.number("hang-detection-log-timeout-minutes", HANG_S // 60)
    return FaultPolicy(
        restarts=arguments.number("max-num-of-unconditional-retry", 0),
        restarts_own=True,
        hang_s=60 * max(1, minutes) if arguments.is_on("enable-hang-detection") else None,
        startup_s=60 * arguments.number("hang-detection-startup-toleration-minutes", 0),
        patterns=tuple(
            each[:LONGEST_PATTERN] for each in arguments.every("custom-log-patterns")[:MOST_PATTERNS]
        ),
    )


@dataclass(frozen=True, slots=True)
class _Arguments:
    """The values of the arguments that are given and fit."""

    given: Mapping[str, Sequence[str]]

    def every(self, name: str) -> Sequence[str]:
        return self.given.get(name, ())

    def last(self, name: str) -> str:
        found = self.every(name)
        return found[-1] if found else fault_arguments.BY_NAME[name].default

    def is_on(self, name: str) -> bool:
        return self.last(name).lower() == "true"

    def number(self, name: str, default: int) -> int:
        return int(self.last(name) or default)
