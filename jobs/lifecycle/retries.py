"""Automatic retries: whether an ended attempt is followed by another (OpenPAI's retry policy)."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from jobs.spec import RestartCondition, RetryPolicy
from jobs.states import ENDINGS, EndKind, Reason, ReasonCode, Retry, State

RETURNING: Final = frozenset({EndKind.PREEMPTION, EndKind.DRAIN, EndKind.REQUEUE, EndKind.GROWTH})
"""Ends that the scheduler wanted: the job comes back."""

_ALWAYS: Final = frozenset({(EndKind.REQUEUE, ReasonCode.REQUEUED), (EndKind.GROWTH, ReasonCode.GROWTH)})

_FIRST_RETRIED_CODE: Final = 128
"""Exit codes below it are permanent errors (Kubeflow's restartPolicy ExitCode)."""

LONGEST_WAIT: Final = timedelta(minutes=5)
PREEMPTED_WAIT: Final = timedelta(minutes=1)


def kind_of(policy: RetryPolicy, code: ReasonCode) -> Retry:
    """Return how an end with this reason counts under `policy`."""
    retry = ENDINGS[code].retry
    return Retry.COUNTED if retry is Retry.TRANSIENT and not policy.fancy else retry


def should_retry(policy: RetryPolicy, code: ReasonCode, counted: int, end: EndKind | None) -> bool:
    """Tell whether to try again after `code`, when `counted` earlier ends already counted.

    A person's stop is final; preemption and draining bring the job back, requeueing and growing always do.
    """
    if (end, code) in _ALWAYS:
        return True
    if end is not None and end not in RETURNING:
        return False
    if ENDINGS[code].state is State.SUCCEEDED:
        return policy.on_success
    kind = kind_of(policy, code)
    if kind is Retry.TRANSIENT:
        return True
    return kind is Retry.COUNTED and (policy.limit is None or counted < policy.limit)


def allows(condition: RestartCondition, reason: Reason) -> bool:
    """Tell whether a failure may be retried by the restart policy of the role whose replica failed first."""
    if condition is RestartCondition.FAILURE or ENDINGS[reason.code].retry is Retry.TRANSIENT:
        return True
    if condition is RestartCondition.NEVER:
        return False
    return (
        reason.code is not ReasonCode.EXIT_CODE
        or int(reason.params.get("exit_code") or 0) >= _FIRST_RETRIED_CODE
    )


def delay(attempt: int, end: EndKind | None = None) -> timedelta:
    """Return how long attempt number `attempt` + 1 waits: 1 s, 2 s, 4 s … 5 min.

    After a preemption the first wait is a minute, so that the other job gets the resources.
    """
    first = PREEMPTED_WAIT if end is EndKind.PREEMPTION else timedelta(seconds=1)
    doubled: int = 2 ** min(attempt - 1, 20)
    return min(first * doubled, LONGEST_WAIT)
