"""The policy of a job's fault tolerance, by the vendors' arguments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
    but not before `startup_s`.  With `stack_s`, one that was silent for so long hangs once its stacks show
    that the ranks wait for each other.  A line with one of `texts`, or that one of the regular expressions
    `patterns` matches, is a fault, and with `finds_stragglers` slow ranks are recorded.  With
    `replaces_nodes` the next attempt avoids the node of a fault.
    """

    restarts: int = 0
    restarts_own: bool = False
    hang_s: int | None = None
    startup_s: int = 0
    texts: tuple[str, ...] = ()
    same_errors: int = SAME_ERRORS
    stack_s: int | None = None
    finds_stragglers: bool = False
    replaces_nodes: bool = True
    patterns: tuple[str, ...] = ()

    @property
    def has_patterns(self) -> bool:
        """Tell whether lines of the output are faults by the job's own words."""
        return bool(self.texts or self.patterns)

    @property
    def watches(self) -> bool:
        """Tell whether the job's output has to be watched while it runs."""
        return self.hang_s is not None or self.has_patterns or self.finds_stragglers


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
    policy = _merge(_of_aihc(arguments), _of_dlc(arguments)) if is_aihc else _of_dlc(arguments)
    patterns = [each for each in spec.fault_tolerance.patterns if len(each) <= LONGEST_PATTERN]
    return replace(policy, patterns=tuple(patterns[:MOST_PATTERNS]))


def _merge(first: FaultPolicy, second: FaultPolicy) -> FaultPolicy:
    """Return the policy of a job with arguments of both vendors: each adds what it switches on."""
    spans = [each.hang_s for each in (first, second) if each.hang_s is not None]
    return replace(
        first,
        restarts=max(first.restarts, second.restarts),
        restarts_own=first.restarts_own or second.restarts_own,
        hang_s=min(spans, default=None),
        same_errors=second.same_errors,
        finds_stragglers=second.finds_stragglers,
    )


def _of_dlc(arguments: _Arguments) -> FaultPolicy:
    modes = {arguments.last("job-execution-mode"), arguments.last("execution-mode")}
    waits = "Async" not in modes  # replicas that wait for each other: only those of a Sync job hang together
    detects = (waits and arguments.is_on("enable-job-hang-detection")) or arguments.is_on(
        "enable-log-hang-detection"
    )
    interval = arguments.number("log-hang-interval-in-seconds", arguments.number("job-hang-interval", HANG_S))
    restarts = arguments.number("max-num-of-job-restart", 3) if arguments.is_on("enable-job-restart") else 0
    return FaultPolicy(
        restarts=restarts,
        restarts_own=arguments.last("fault-tolerant-policy") == "OnFailure",
        hang_s=max(1, interval) if detects else None,
        same_errors=arguments.number("max-num-of-same-error", SAME_ERRORS) or SAME_ERRORS,
        finds_stragglers=arguments.is_on("enable-perftracker"),
    )


def _of_aihc(arguments: _Arguments) -> FaultPolicy:
    """Return AIHC's: its retries are unconditional, so that the program's own errors count among them."""
    restarts = arguments.number("max-num-of-unconditional-retry", 0)
    minutes = arguments.number("hang-detection-log-timeout-minutes", HANG_S // 60)
    stack_minutes = arguments.number("hang-detection-stack-timeout-minutes", 0)
    is_detected = arguments.is_on("enable-hang-detection")
    return FaultPolicy(
        restarts=restarts,
        restarts_own=restarts > 0,
        hang_s=60 * max(1, minutes) if is_detected else None,
        stack_s=60 * stack_minutes if is_detected and stack_minutes else None,
        startup_s=60 * arguments.number("hang-detection-startup-toleration-minutes", 0),
        texts=tuple(
            each[:LONGEST_PATTERN] for each in arguments.every(fault_arguments.REPEATABLE)[:MOST_PATTERNS]
        ),
        replaces_nodes=arguments.last("enable-replace").lower() != "false",
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
