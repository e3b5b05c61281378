"""What Slurm would do with a job, asked beforehand by `sbatch --test-only`; nothing is started or kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

from jobs.backends.base import NotSent, Refused, Tried, Unreachable
from jobs.backends.slurm.programs import Programs
from jobs.backends.slurm.sight import ROUND_S
from jobs.states import Reason, ReasonCode

SOON_S: Final = 60
"""Slurm starts jobs at its next look, and not in the second in which it is asked."""


def untried(write: Callable[[], str], user: str) -> Iterator[Tried]:
    """As whom it would run, where nothing can be asked as that user; what it would be refused for before."""
    try:
        write()
    except Refused as refused:
        yield Tried("accepted", False, reason=refused.reason)
        return
    except NotSent as not_sent:
        raise Unreachable(str(not_sent.reason.params.get("detail"))) from not_sent
    yield Tried("unable", None)
    yield Tried("user", True, detail=user)


def tried(programs: Programs, write: Callable[[], str], user: str) -> Iterator[Tried]:
    """Every finding; `write` makes the script, or raises what it raises at a submission."""
    try:
        expected = programs.test(write())
    except Refused as refused:
        yield Tried("accepted", False, reason=refused.reason)
        return
    except NotSent as not_sent:
        raise Unreachable(str(not_sent.reason.params.get("detail"))) from not_sent
    yield Tried("accepted", True)
    if expected.starts_at <= time.time() + SOON_S:
        yield Tried("room", True, detail=expected.nodes)
    else:
        start = -(-expected.starts_at // ROUND_S) * ROUND_S
        yield Tried(
            "room", None, reason=Reason(ReasonCode.ENGINE_QUEUE, {"slurm": "Resources", "start": start})
        )
    yield Tried("user", True, detail=user)
