"""Previews of other limits or of one more request, by admission itself; nothing is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from quotas.admission import (
    Account,
    Decision,
    Limits,
    Outcome,
    Snapshot,
    Waiting,
    Why,
    decide,
    queue_snapshot,
    snapshot,
)
from quotas.admission.quota_usage import QuotaUsage, Used
from quotas.amounts import Amounts
from quotas.models import Cluster, Quota

NEVER = frozenset({Why.EXCEEDS_QUOTA, Why.EXCEEDS_CLUSTER, Why.NO_SUCH_GPU, Why.NO_SUCH_NODE})

ASKING = "?"
"""The holder under which a question stands in the queue; no request is called so."""


@dataclass(frozen=True, slots=True)
class Drain:
    """A limit below what is in use under it.  `kind` is `jobs`, `gpu`, `cpu`, `memory` or a GPU's type."""

    quota_id: int
    kind: str
    used: int
    limit: int


@dataclass(frozen=True, slots=True)
class LimitPreview:
    """The differences.  All but `drains` are holders, in the order of admission.

    `above` runs on under a limit that is lower than what is in use; `never` could start under no
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


def preview(cluster: Cluster, changed: Mapping[int, Quota]) -> LimitPreview:
    """Return the effect of giving the quotas of `changed` their new limits now."""
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
    return LimitPreview(
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
    """Return current usage by quota key; quotas without usage are absent."""
    return snapshot.load_quota_usage(cluster).by_quota()


def _never(outcome: Outcome) -> Iterator[str]:
    return (each.holder for each in outcome.decisions if each.why in NEVER)


def _drains(now: Snapshot, accounts: Mapping[int, Account], changed: Iterable[int]) -> Iterator[Drain]:
    """The new limits that are below what counts under them."""
    used = QuotaUsage(accounts, now.holdings).by_quota()
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


# --- one more request ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trial:
    """Admission's answer to one more request: its decision, why it would wait, who would give back for
    it, and what would be left that nobody holds or waits for.
    """

    decision: Decision
    verdict: queue_snapshot.Verdict | None = None
    given_back: tuple[str, ...] = ()
    room: tuple[tuple[str, Amounts], ...] = ()

    @property
    def starts(self) -> bool:
        """Whether it would start, or be handed over, now."""
        return self.decision.admitted


def preview_request(
    now: Snapshot,
    request: Waiting,
    *,
    held: bool = False,
    others: bool = False,
    not_before: datetime | None = None,
) -> Trial:
    """Return admission's answer to `request`, whose holder is ASKING, if it were made now."""
    aside = snapshot.apart_of(
        ASKING, request.quota_id, held=held, others=others, not_before=not_before, now=now.now
    )
    if aside is not None:
        return Trial(aside, _verdict(aside, None))
    outcome = decide(replace(now, waiting=[*now.waiting, request]))
    line = queue_snapshot.Positions()
    for decision in outcome.decisions:
        position = line.next(decision.why, decision.quota_id)
        if decision.holder == ASKING:
            back = tuple(each.holder for each in outcome.taken_back if each.for_holder == ASKING)
            verdict = _verdict(decision, position)
            return Trial(decision, verdict, back, outcome.room)
    raise AssertionError("every request is decided")


def _verdict(decision: Decision, position: int | None) -> queue_snapshot.Verdict | None:
    if decision.why is None:
        return None
    return queue_snapshot.Verdict(
        ASKING, decision.quota_id, decision.gpus, decision.why, decision.params, position
    )


@dataclass(frozen=True, slots=True)
class Share:
    """One resource under a limit: what counts there now, and what the request would add.

    `kind` is `jobs`, `gpu`, `cpu_milli`, `memory_mib` or a GPU's type; `limit` None is no limit.
    """

    kind: str
    used: int
    wanted: int
    limit: int | None

    @property
    def free(self) -> int | None:
        """Return what would be left; None without a limit."""
        return None if self.limit is None else max(0, self.limit - self.used - self.wanted)

    @property
    def over(self) -> bool:
        """Whether it would be more than the limit."""
        return self.limit is not None and self.wanted > 0 and self.used + self.wanted > self.limit

    @property
    def segments(self) -> list[tuple[str, int, int]]:
        """(what, from, width) of a bar of 100: `used`, and then `wanted` or, above the limit, `over`."""
        if self.limit is None:
            return []
        whole = max(self.limit, self.used + self.wanted, 1)
        used, wanted = round(100 * self.used / whole), round(100 * self.wanted / whole)
        parts = [("used", 0, used), ("over" if self.over else "wanted", used, min(wanted, 100 - used))]
        return [part for part in parts if part[2] > 0]


@dataclass(frozen=True, slots=True)
class Level:
    """A limit under which the request counts: a quota's, or with `of_person` that of one person in it."""

    quota_id: int
    name: str
    of_person: bool
    shares: tuple[Share, ...]


def levels(now: Snapshot, request: Waiting) -> tuple[Level, ...]:
    """The request's own quota, what one person may hold in it, and whatever above it has a limit."""
    usage = QuotaUsage(now.accounts, now.holdings)
    amounts = request.shape.amounts
    account = now.accounts[request.quota_id]
    used = usage.by_quota()
    nothing = Used()
    own, *above = (now.accounts[key] for key in _lineage(now.accounts, request.quota_id))
    of_person = usage.of_person(request.quota_id, request.owner_id)
    rows = [
        Level(own.id, own.name, False, _shares(own.limits, used.get(own.id, nothing), amounts, every=True)),
        Level(own.id, own.name, True, _shares(account.limits_of(request.owner_id), of_person, amounts)),
        *(
            Level(each.id, each.name, False, _shares(each.limits, used.get(each.id, nothing), amounts))
            for each in above
        ),
    ]
    return tuple(level for level in rows if level.shares)


def _shares(limits: Limits, used: Used, wanted: Amounts, *, every: bool = False) -> tuple[Share, ...]:
    """Of each resource that has a limit; with `every` also of what is asked for without one."""
    of_type = used.gpus_by_type
    rows = [
        Share("gpu", used.gpus, wanted.gpu_count, limits.gpus),
        *(
            Share(kind, of_type.get(kind, 0), wanted.gpus.get(kind, 0), limits.gpus_by_type.get(kind))
            for kind in sorted({*limits.gpus_by_type, *wanted.gpus} - {""})
        ),
        Share("cpu_milli", used.cpu_milli, wanted.cpu_milli, limits.cpu_milli),
        Share("memory_mib", used.memory_mib, wanted.memory_mib, limits.memory_mib),
        Share("jobs", used.jobs, 1, limits.jobs),
    ]
    return tuple(
        row for row in rows if row.limit is not None or (every and row.wanted and row.kind != "jobs")
    )
