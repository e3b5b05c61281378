"""Requests of jobs to the ledger: amounts of resources, and the terms of waiting."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from django.utils.dateparse import parse_datetime
from django.utils.timezone import is_naive, make_aware

from jobs.spec import Bid, Idle, JobSpec, ResourceRequest, resource_requests
from quotas import ledger
from quotas.amounts import Amounts
from quotas.clusters import gputypes
from quotas.models import Quota, Source

LOWEST: Final = 1
"""The priority of a job without one."""


def parts_of(spec: JobSpec, known: Mapping[str, str] | None = None) -> list[ledger.Part]:
    """Return the job's resource requests for the ledger.

    GPUs have the names that quotas use, which are looked up unless they are `known`.
    """
    if known is None:
        known = gputypes.names() if any(role.resources.gpus for role in spec.roles) else {}
    return [
        ledger.Part(
            ask.replicas,
            gputypes.canonicalize(amounts_of(ask), known),
            role.nodes.only,
            role.nodes.never,
            spec.least_replicas(role),
        )
        for ask, role in zip(resource_requests(spec), spec.roles, strict=True)
    ]


def amounts_of(ask: ResourceRequest) -> Amounts:
    """Return the amounts of one replica, as the ledger counts them."""
    return Amounts(ask.cpu_milli, ask.memory_mib, ask.by_type)


def terms_of(spec: JobSpec) -> ledger.Terms:
    """Return the terms on which the job waits."""
    return ledger.Terms(
        idle="" if spec.idle in {None, Idle.FORBID} else str(spec.idle),
        bids=[_bid(role.bid) for role in spec.roles],
        held=spec.hold,
        others=bool(spec.after),
        not_before=_moment(spec.not_before),
    )


def level_of(spec: JobSpec, quota: Quota) -> int:
    """Return the job's priority in its quota; on other resources all jobs have the lowest (DLC page)."""
    return (spec.priority if quota.source == Source.QUOTA else None) or LOWEST


def _moment(text: str) -> datetime | None:
    """Return an RFC 3339 time; one without a zone is in the console's own."""
    moment = parse_datetime(text) if text else None
    return make_aware(moment) if moment is not None and is_naive(moment) else moment


def _bid(bid: Bid | None) -> dict[str, int]:
    """Return a role's bid as the ledger stores it; none at all is up to the market price."""
    if bid is not None and bid.discount_percent is not None:
        return {"percent": bid.discount_percent}
    return {"micro": bid.price_micro} if bid is not None and bid.price_micro is not None else {}
