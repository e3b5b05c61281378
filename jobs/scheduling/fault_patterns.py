"""Search of a job's output for the lines that its own policy names as faults."""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from jobs.fault_tolerance.policy import FaultPolicy
from jobs.logs import pattern_search
from jobs.logs.pattern_search import BadPattern, PatternTooSlow

log = structlog.get_logger(__name__)


def find_line(policy: FaultPolicy, parts: Iterable[bytes]) -> tuple[int, str] | None:
    """Return the first line that the policy names, and the number of its part; None for none.

    Patterns were checked when the job was submitted; those that can't be used all the same find nothing.
    """
    expressions = [*map(pattern_search.escape, policy.texts), *policy.patterns]
    try:
        return pattern_search.find_first(parts, expressions)
    except (BadPattern, PatternTooSlow) as error:
        log.warning("fault_patterns_unusable", problem=repr(error))
        return None
