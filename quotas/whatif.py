"""What other ceilings would do: admission itself is asked, with them and without, and nothing is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from quotas import snapshot
from quotas.admission import Account, Outcome, Snapshot, Why, decide
from quotas.admission.ceilings import Books, Used
from quotas.models import Cluster, Quota

NEVER = frozenset({Why.EXCEEDS_QUOTA, Why.EXCEEDS_CLUSTER, Why.NO_SUCH_GPU})


@dataclass(frozen=True, slots=True)
class Drain:
    """A ceiling below what is in use under it.  `kind` is `jobs`, `gpu`, `cpu`, `memory` or a GPU's type."""

    quota_id: int
    kind: str
    used: int
    limit: int


@dataclass(frozen=True, slots=True)
class Preview:
    """What would be different.  All but `drains` are holders, in the order of admission.

    `above` runs on under a ceiling that is lower than what is in use; `never` could start under no
    circumstances; `starts` would start at once, `waits` would no longer; `given_back` is asked to end.
    """

    drains: tuple[Drain, ...]
    above: tuple[str, ...]
    never: tuple[str, ...]
    starts: tuple[str, ...]
    waits: tuple[str, ...]
    given_back: tuple[str, ...]

    @property
    def nothing(self) -> bool:
        """Whether no job would notice."""
        return not (self.drains or self.never or self.starts or self.waits or self.given_back)


def preview(cluster: Cluster, changed: Mapping[int, Quota]) -> Preview:
    """What would follow if the quotas of `changed` had their new ceilings now."""
    now = snapshot.take(cluster)
    accounts = {
        key: replace(account, limits=snapshot.limits_of(changed[key])) if key in changed else account
        for key, account in now.accounts.items()
    }
    then = replace(now, accounts=accounts)
    before, after = decide(now), decide(then)
    drains = tuple(_drains(now, accounts, changed))
    low = {each.quota_id for each in drains}
    started = {each.holder for each in before.decisions if each.admitted}
    starting = [each.holder for each in after.decisions if each.admitted]
    hopeless = set(_never(before))
    gone = {each.holder for each in before.taken_back}
    return Preview(
        drains=drains,
        above=tuple(
            each.holder
            for each in now.holdings
            if not each.borrowed and low & set(_lineage(accounts, each.quota_id))
        ),
        never=tuple(holder for holder in _never(after) if holder not in hopeless),
        starts=tuple(holder for holder in starting if holder not in started),
        waits=tuple(each.holder for each in after.decisions if each.holder in started and not each.admitted),
        given_back=tuple(each.holder for each in after.taken_back if each.holder not in gone),
    )


def used_of(cluster: Cluster) -> Mapping[int, Used]:
    """What counts under each quota of the cluster now, by its key; those with nothing are absent."""
    return snapshot.books_of(cluster).by_quota()


def _never(outcome: Outcome) -> Iterator[str]:
    return (each.holder for each in outcome.decisions if each.why in NEVER)


def _drains(now: Snapshot, accounts: Mapping[int, Account], changed: Iterable[int]) -> Iterator[Drain]:
    """The new ceilings that are below what counts under them."""
    used = Books(accounts, now.holdings).by_quota()
    for key in changed:
        if key not in used or key not in accounts:
            continue
        limits, has = accounts[key].limits, used[key]
        pairs: list[tuple[str, int, int | None]] = [
            ("jobs", has.jobs, limits.jobs),
            ("gpu", has.gpus, limits.gpus),
            ("cpu", has.cpu_milli, limits.cpu_milli),
            ("memory", has.memory_mib, limits.memory_mib),
            *((kind, has.gpus_by_type.get(kind, 0), most) for kind, most in limits.gpus_by_type.items()),
        ]
        yield from (
            Drain(key, kind, uses, most) for kind, uses, most in pairs if most is not None and uses > most
        )


def _lineage(accounts: Mapping[int, Account], quota_id: int) -> Iterator[int]:
    seen: set[int] = set()
    at: int | None = quota_id
    while at is not None and at in accounts and at not in seen:
        seen.add(at)
        yield at
        at = accounts[at].parent_id
