"""When an ended attempt is followed by another."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.lifecycle import retries
from jobs.spec import RetryPolicy
from jobs.states import EndKind, ReasonCode

NEVER = RetryPolicy()
TWICE = RetryPolicy(limit=2)
SERVICE = RetryPolicy(limit=None, on_success=True, fancy=False)
ALWAYS = RetryPolicy(limit=None)


@pytest.mark.parametrize(
    ("policy", "code", "counted", "end", "expected"),
    [
        (NEVER, ReasonCode.EXIT_CODE, 0, None, False),
        (TWICE, ReasonCode.EXIT_CODE, 1, None, True),
        (TWICE, ReasonCode.EXIT_CODE, 2, None, False),
        (NEVER, ReasonCode.NODE_LOST, 9, None, True),
        (RetryPolicy(fancy=False), ReasonCode.NODE_LOST, 0, None, False),
        (ALWAYS, ReasonCode.EXIT_CODE, 99, None, True),
        (ALWAYS, ReasonCode.COMPLETED, 0, None, False),
        (SERVICE, ReasonCode.COMPLETED, 0, None, True),
        (ALWAYS, ReasonCode.OUT_OF_MEMORY, 0, None, False),
        (ALWAYS, ReasonCode.REFUSED, 0, None, False),
        (SERVICE, ReasonCode.EXIT_CODE, 0, EndKind.USER_STOP, False),
        (SERVICE, ReasonCode.COMPLETED, 0, EndKind.USER_STOP, False),
        (NEVER, ReasonCode.PREEMPTED, 0, EndKind.PREEMPTION, True),
        (NEVER, ReasonCode.DRAINED, 0, EndKind.DRAIN, True),
        (ALWAYS, ReasonCode.LOST, 0, None, False),
    ],
)
def test_retry_follows_policy_table(
    policy: RetryPolicy, code: ReasonCode, counted: int, end: EndKind | None, expected: bool
) -> None:
    assert retries.should_retry(policy, code, counted, end) is expected


def test_retry_waits_double_up_to_five_minutes() -> None:
    waits = [retries.delay(attempt) for attempt in (1, 2, 3, 60)]
    assert waits == [timedelta(seconds=1), timedelta(seconds=2), timedelta(seconds=4), timedelta(minutes=5)]
