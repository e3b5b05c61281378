"""What Slurm would do with a job, asked beforehand by `sbatch --test-only`; nothing is started or kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

from jobs.backends.base import NotSent, Refused, Tried, Unreachable
from jobs.backends.slurm.client.programs import Expected
from jobs.backends.slurm.status.sight import ROUND_S
from jobs.states import Reason, ReasonCode

SOON_S: Final = 60
"""Slurm starts jobs at its next look, and not in the second in which it is asked."""


def tried(ask: Callable[[], tuple[str, Expected | None]]) -> Iterator[Tried]:
    """Every finding; `ask` says as whom it would run, and what Slurm expects of it, None where Slurm can't be
    asked as that user, or raises what it raises at a submission.
    """
    try:
        user, expected = ask()
    except Refused as refused:
        yield Tried("accepted", False, reason=refused.reason)
        return
    except NotSent as not_sent:
        raise Unreachable(str(not_sent.reason.params.get("detail"))) from not_sent
    if expected is None:
        yield Tried("unable", None)
    else:
        yield Tried("accepted", True)
        yield _room(expected)
    yield Tried("user", True, detail=user)


def _room(expected: Expected) -> Tried:
    if expected.starts_at <= time.time() + SOON_S:
        return Tried("room", True, detail=expected.nodes)
    start = -(-expected.starts_at // ROUND_S) * ROUND_S
    return Tried("room", None, reason=Reason(ReasonCode.ENGINE_QUEUE, {"slurm": "Resources", "start": start}))
