"""Taking back: which borrowers end so that somebody starts who has a right to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quotas.admission.free_capacity import UNLIMITED, Most, Placement, Pool
from quotas.admission.placement import Placer
from quotas.admission.values import Account, HeldResources, ResourceShape


def reclaimable(holdings: Iterable[HeldResources], accounts: Mapping[int, Account]) -> list[HeldResources]:
    """Return the holdings that can be reclaimed, now or after their least running time, in order.

    Those that do not run yet go first, since they lose nothing; then the lowest priority, then the newest.
    """
    found = [
        each
        for each in holdings
        if not each.coming
        and (each.borrowed or ((account := accounts.get(each.quota_id)) is not None and account.preemptible))
    ]
    return sorted(found, key=lambda each: (each.running, each.priority, -each.since, each.holder))


def choose(
    shape: ResourceShape,
    pool: Pool,
    candidates: Iterable[HeldResources],
    placer: Placer,
    most: Most = UNLIMITED,
) -> tuple[list[HeldResources], Placement] | None:
    """The fewest of `candidates`, in their order, whose end makes room for `shape` in `pool`.

    The pool has what they give back afterwards, without the placement.  None, and an unchanged pool, when
    all of them together are not enough.
    """
    chosen: list[HeldResources] = []
    placement: Placement | None = None
    for holding in candidates:
        if not any(name in pool.rooms for name, _amounts in holding.placement):
            continue
        pool.give(holding.placement)
        chosen.append(holding)
        placement = placer.place(pool, shape, most)
        if placement is not None:
            break
    if placement is None:
        for holding in chosen:
            pool.give(holding.placement, -1)
        return None
    for holding in reversed(chosen[:-1]):
        pool.give(placement)
        pool.give(holding.placement, -1)
        spared = placer.place(pool, shape, most)
        if spared is not None:
            chosen.remove(holding)
            placement = spared
        else:
            pool.give(holding.placement)
            pool.give(placement, -1)
    return chosen, placement
