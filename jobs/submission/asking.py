"""What a job asks of the ledger: how much, and on which terms."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.utils.dateparse import parse_datetime
from django.utils.timezone import is_naive, make_aware

from jobs.asked import Ask, asked
from jobs.spec import Bid, Idle, JobSpec
from quotas import ledger
from quotas.amounts import Amounts
from quotas.clusters import gputypes


def parts_of(spec: JobSpec, known: Mapping[str, str] | None = None) -> list[ledger.Part]:
    """What the job asks of the ledger: `asked` of it, with GPUs under the names that quotas use, which are
    looked up unless they are `known`.
    """
    known = gputypes.names() if known is None else known
    return [
        ledger.Part(ask.replicas, gputypes.renamed(amounts_of(ask), known), role.nodes.only, role.nodes.never)
        for ask, role in zip(asked(spec), spec.roles, strict=True)
    ]


def amounts_of(ask: Ask) -> Amounts:
    """What one replica asks for, as the ledger counts it."""
    return Amounts(ask.cpu_milli, ask.memory_mib, ask.by_type)


def terms_of(spec: JobSpec) -> ledger.Terms:
    """On which terms the job waits."""
    return ledger.Terms(
        idle="" if spec.idle in {None, Idle.FORBID} else str(spec.idle),
        bids=[_bid(role.bid) for role in spec.roles],
        held=spec.hold,
        others=bool(spec.after),
        not_before=_moment(spec.not_before),
    )


def _moment(text: str) -> datetime | None:
    """An RFC 3339 time; one without a zone is in the console's own."""
    moment = parse_datetime(text) if text else None
    return make_aware(moment) if moment is not None and is_naive(moment) else moment


def _bid(bid: Bid | None) -> dict[str, int]:
    """A role's bid as the ledger keeps it; none at all is up to the market price."""
    if bid is not None and bid.discount_percent is not None:
        return {"percent": bid.discount_percent}
    return {"micro": bid.price_micro} if bid is not None and bid.price_micro is not None else {}
