"""Where a job could run, as the section on resources shows it: type, source, quota, what is free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import Q
from django.utils.translation import gettext as _

from jobs import submission
from jobs.messages.amounts import memory, money, quantity
from jobs.web.forming.standing import Sentences, Standing
from quotas.amounts import Amounts
from quotas.ledger import reports
from quotas.ledger.reports import QuotaUse
from quotas.models import Node, Quota, Spec, User

MOST: Final = 30
MOST_SPECS: Final = 100
MOST_NODES: Final = 20

Options = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class PlaceShown:
    """A quota: its address is what the page's own choice of a place has."""

    address: str
    quota: Quota
    free: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class Places:
    """The quotas that are open to the person, and what the rules say of the chosen one's type and source."""

    chosen: Quota | None
    rows: tuple[PlaceShown, ...]
    told: Sentences


def places(user: User, standing: Standing) -> Places:
    """Every quota that a job of the person may go to, with what is free in it now."""
    there = list(submission.quotas_open_to(user)[:MOST])
    # What is free in the only one stands in the panel; the list is shown where there is something to choose.
    uses = {use.quota.pk: use for use in reports.quotas_of(user)} if len(there) > 1 else {}
    chosen = standing.quota
    rows = tuple(
        PlaceShown(
            submission.address_of(quota),
            quota,
            free(uses.get(quota.pk)),
            chosen is not None and quota.pk == chosen.pk,
        )
        for quota in there
    )
    return Places(chosen, rows, standing.of("kind", "source"))


def free(use: QuotaUse | None) -> str:
    """What of its ceilings nobody holds, in words; of what has no ceiling nothing is said."""
    bars = [(bar.kind, bar.limit - bar.held) for bar in (use.bars if use else ()) if bar.limit is not None]
    return ", ".join(quantity(kind, max(0, left)) for kind, left in bars) or _("no ceiling")


def specs(quota: Quota | None) -> Options:
    """The ready-made sizes on offer there, each with what it holds and its price."""
    if quota is None:
        return ()
    here = Q(cluster=None) | Q(cluster=quota.cluster_id)
    ours = Q(workspace=None) | Q(workspace=quota.workspace_id)
    rows = Spec.objects.filter(here, ours, offered=True).order_by("price_micro", "name")[:MOST_SPECS]
    return tuple((row.name, _spec(row)) for row in rows)


def _spec(spec: Spec) -> str:
    holds = Amounts(spec.cpu_milli, spec.memory_mib, dict(spec.gpus))
    gpus = [quantity(kind, count) for kind, count in holds.gpus.items()]
    words = ", ".join((quantity("cpu", holds.cpu_milli), memory(holds.memory_mib), *gpus))
    return _("%(holds)s: %(price)s an hour") % {"holds": words, "price": money(spec.price_micro)}


def nodes(quota: Quota | None) -> Sequence[Node]:
    """The nodes there, by name; of many the first."""
    return list(Node.objects.filter(cluster=quota.cluster_id).order_by("name")[:MOST_NODES]) if quota else []
