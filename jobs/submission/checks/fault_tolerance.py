"""Checks of the arguments of fault tolerance: what is misspelled, wrong, or without effect here."""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterator, Sequence
from typing import Final

from jobs.dialects import fault_arguments
from jobs.dialects.argument_text import find_arguments
from jobs.dialects.base import Note, Problem
from jobs.dialects.fault_arguments import BY_NAME, ArgumentKind
from jobs.dialects.torchrun_arguments import find_max_restarts
from jobs.fault_tolerance.policy import LONGEST_PATTERN, MOST_PATTERNS, policy_of
from jobs.logs import pattern_search
from jobs.logs.pattern_search import BadPattern, PatternTooSlow
from jobs.spec import JobSpec, RestartScope

_AT: Final = "/fault_tolerance/arguments"
_PATTERNS: Final = "/fault_tolerance/patterns"
_SCOPE: Final = "/fault_tolerance/restart_scope"
_CHECK_S: Final = 3.0
_ALIKE: Final = 0.8
_LONGEST: Final = 60

_EXPECTED: Final = {
    ArgumentKind.FLAG: "true, false",
    ArgumentKind.COUNT: "0, 1, 2 …",
    ArgumentKind.SECONDS: "1, 2, 3 … (s)",
    ArgumentKind.MINUTES: "1, 2, 3 … (min)",
    ArgumentKind.TEXT: "…",
}


def find_problems(spec: JobSpec) -> Iterator[Problem]:
    """Yield a problem for each misspelled argument, and for each wrong value."""
    if not spec.fault_tolerance.enabled:
        return
    for argument in find_arguments(spec.fault_tolerance.arguments):
        known = BY_NAME.get(argument.name)
        if known is None:
            close = _find_close(argument.name)
            if close:
                params = {"name": argument.name, "close": close}
                yield Problem("fault_argument_misspelled", _AT, params=params)
        elif not known.fits(argument.value):
            expected = ", ".join(known.words) or _EXPECTED[known.kind]
            params = {
                "name": known.name,
                "value": argument.value,
                "expected": expected,
                "source": known.source,
            }
            yield Problem("fault_argument_wrong", _AT, params=params)
    yield from _find_bad_patterns(spec)


def _find_bad_patterns(spec: JobSpec) -> Iterator[Problem]:
    """Yield a problem for each pattern that can't be looked for, or that every line would match."""
    patterns = spec.fault_tolerance.patterns
    if len(patterns) > MOST_PATTERNS:
        yield Problem("fault_patterns_many", _PATTERNS, params={"most": MOST_PATTERNS})
        return
    if all(len(pattern) <= LONGEST_PATTERN for pattern in patterns) and _find_defect(patterns) is None:
        return  # one search for all of them; only for wrong ones each by itself
    deadline = time.monotonic() + _CHECK_S
    for number, pattern in enumerate(patterns, 1):
        about: dict[str, str | int] = {"number": number}
        if len(pattern) > LONGEST_PATTERN:
            yield Problem("fault_pattern_long", _PATTERNS, params={**about, "most": LONGEST_PATTERN})
        elif time.monotonic() > deadline:
            yield Problem("fault_pattern_slow", _PATTERNS, params=about)
            return
        elif (defect := _find_defect([pattern])) is not None:
            code, problem = defect
            yield Problem(code, _PATTERNS, params={**about, "problem": problem} if problem else about)


def _find_defect(patterns: Sequence[str]) -> tuple[str, str] | None:
    """Return the code of a problem with some of the patterns, and grep's words for it; None for none."""
    try:
        found = pattern_search.find_first([b"\n"], patterns)
    except BadPattern as error:
        return "fault_pattern_wrong", str(error)
    except PatternTooSlow:
        return "fault_pattern_slow", ""
    return ("fault_pattern_any", "") if found is not None else None


def find_notes(spec: JobSpec) -> Iterator[Note]:
    """Yield a note for each argument without effect: one that nobody knows, or that nothing here acts on.

    So are restarts in torchrun's command that are not the field's, patterns without restarts, and restarts
    that are counted apart.
    """
    for number, role in enumerate(spec.roles):
        own, limit = find_max_restarts(role.command), role.restart.limit
        if own is not None and limit is not None and own != limit:
            params: dict[str, str | int | float | None] = {"role": role.name, "own": own, "limit": limit}
            yield Note("torchrun_restarts_differ", f"/roles/{number}/restart/limit", params)
    if not spec.fault_tolerance.enabled:
        return
    for argument in find_arguments(spec.fault_tolerance.arguments):
        known = BY_NAME.get(argument.name)
        if known is None and not _find_close(argument.name):
            yield Note("fault_argument_unknown", _AT, {"name": argument.name})
        elif known is not None and not known.acts:
            yield Note("fault_argument_unused", _AT, {"name": argument.name})
    policy = policy_of(spec)
    if policy is not None and policy.restarts:
        yield from _find_budgets(spec, policy.restarts)
    if spec.fault_tolerance.restart_scope is RestartScope.REPLICA and not spec.restarts_replicas:
        yield Note("restart_scope_job", _SCOPE)
    if policy is not None and policy.patterns and not policy.restarts and spec.retry.limit == 0:
        yield Note("fault_patterns_without_restarts", _PATTERNS)


def _find_budgets(spec: JobSpec, restarts: int) -> Iterator[Note]:
    """Yield a note for each role whose processes torchrun starts again too, as the two numbers multiply."""
    for number, role in enumerate(spec.roles):
        own = find_max_restarts(role.command)
        inner = role.restart.limit if own is None else own
        if inner:
            params: dict[str, str | int | float | None] = {
                "role": role.name,
                "inner": inner,
                "outer": restarts,
            }
            yield Note("restart_budgets", f"/roles/{number}/restart/limit", params)


def _find_close(name: str) -> str:
    """Return the known argument that was probably meant; "" where none is alike."""
    names = [each.name for each in fault_arguments.ARGUMENTS]
    return next(iter(difflib.get_close_matches(name[:_LONGEST], names, 1, _ALIKE)), "")
