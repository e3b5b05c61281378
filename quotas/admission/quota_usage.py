"""Usage of each quota and of each person in it, checked against the limits of both.

A reservation counts in its own quota and in everything above; what is borrowed counts nowhere.  Beside what
is held stands what is set aside for those who wait for it (docs/quotas.md, "Who is next").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quotas.admission.values import Account, HeldResources, Limits, Params, Waiting, Why
from quotas.amounts import Amounts


class Used:
    """A running sum."""

    __slots__ = ("cpu_milli", "gpus", "gpus_by_type", "jobs", "memory_mib")

    def __init__(self) -> None:
        self.cpu_milli = self.memory_mib = self.gpus = self.jobs = 0
        self.gpus_by_type: dict[str, int] = {}

    def add(self, amounts: Amounts, sign: int = 1) -> None:
        """Count one more holder, or with `sign` -1 one less."""
        self.cpu_milli += sign * amounts.cpu_milli
        self.memory_mib += sign * amounts.memory_mib
        self.jobs += sign
        for kind, count in amounts.gpus.items():
            self.gpus += sign * count
            self.gpus_by_type[kind] = self.gpus_by_type.get(kind, 0) + sign * count

    def copy(self) -> Used:
        """Return the same sums, to be changed by themselves."""
        made = Used()
        made.cpu_milli, made.memory_mib, made.gpus, made.jobs = (
            self.cpu_milli,
            self.memory_mib,
            self.gpus,
            self.jobs,
        )
        made.gpus_by_type = dict(self.gpus_by_type)
        return made

    def at_least(self, other: Used) -> None:
        """Count no less than `other` does."""
        self.cpu_milli = max(self.cpu_milli, other.cpu_milli)
        self.memory_mib = max(self.memory_mib, other.memory_mib)
        self.gpus = max(self.gpus, other.gpus)
        self.jobs = max(self.jobs, other.jobs)
        for kind, count in other.gpus_by_type.items():
            self.gpus_by_type[kind] = max(self.gpus_by_type.get(kind, 0), count)

    def set_aside(self, limits: Limits, amounts: Amounts) -> tuple[bool, bool]:
        """Count what is left under `limits` of what `amounts` need.

        Return whether that is all of it, and whether it is anything.  GPUs of any type may come to be of each
        type: so many are set aside of each.
        """
        gpus, any_type = amounts.gpu_count, amounts.gpus.get("", 0)
        enough = over(limits, self, amounts, gpus) is None
        shares = (
            _share(amounts.cpu_milli, limits.cpu_milli, self.cpu_milli),
            _share(amounts.memory_mib, limits.memory_mib, self.memory_mib),
            _share(gpus, limits.gpus, self.gpus),
            _share(1, limits.jobs, self.jobs),
        )
        self.cpu_milli += shares[0]
        self.memory_mib += shares[1]
        self.gpus += shares[2]
        self.jobs += shares[3]
        anything = any(shares)
        for kind, most in limits.gpus_by_type.items():
            wanted = amounts.gpus.get(kind, 0) + any_type
            if wanted:
                used = self.gpus_by_type.get(kind, 0)
                share = _share(wanted, most, used)
                self.gpus_by_type[kind] = used + share
                anything = anything or share > 0
        return enough, anything


def _share(wanted: int, most: int | None, used: int) -> int:
    """How much of what is wanted a limit leaves; nothing where there is none."""
    return 0 if most is None else max(0, min(wanted, most - used))


NONE = Used()
FREE = Limits()
Over = tuple[str, int, int, int]
"""Which kind of resource: what is wanted, what is used, and the limit."""


def over(limits: Limits, used: Used, amounts: Amounts, gpu_count: int) -> Over | None:
    """The first limit that `amounts` would pass beside what is used; None when all of it fits."""
    if limits.jobs is not None and used.jobs + 1 > limits.jobs:
        return "jobs", 1, used.jobs, limits.jobs
    if limits.gpus is not None and gpu_count and used.gpus + gpu_count > limits.gpus:
        return "gpu", gpu_count, used.gpus, limits.gpus
    if (
        limits.cpu_milli is not None
        and amounts.cpu_milli
        and used.cpu_milli + amounts.cpu_milli > limits.cpu_milli
    ):
        return "cpu", amounts.cpu_milli, used.cpu_milli, limits.cpu_milli
    if (
        limits.memory_mib is not None
        and amounts.memory_mib
        and used.memory_mib + amounts.memory_mib > limits.memory_mib
    ):
        return "memory", amounts.memory_mib, used.memory_mib, limits.memory_mib
    if limits.gpus_by_type and gpu_count:
        return _over_types(limits.gpus_by_type, used, amounts)
    return None


def _over_types(most: Mapping[str, int], used: Used, amounts: Amounts) -> Over | None:
    for kind, count in amounts.gpus.items():
        limit, has = most.get(kind), used.gpus_by_type.get(kind, 0)
        if limit is not None and count and has + count > limit:
            return kind, count, has, limit
    return None


Purse = tuple[int, int]
"""A quota, or 0 for all public ones together, and a person."""

Level = int | Purse
"""A limit: a quota's by its key, or that of a person in one."""


class QuotaUsage:
    """The sums of one pass: of every quota with what hangs below it, and of every person in each quota.

    `types` are how many GPUs of each type the cluster has: what GPUs of any type can come to.
    """

    def __init__(
        self,
        accounts: Mapping[int, Account],
        holdings: Iterable[HeldResources],
        types: Mapping[str, int] | None = None,
    ) -> None:
        self._accounts = accounts
        self._types = types
        self._quotas: dict[int, Used] = {}
        self._people: dict[Purse, Used] = {}
        self._claimed: dict[Level, Used] = {}
        self.pending: dict[int, int] = {}
        self._above = {key: tuple(_lineage(accounts, key)) for key in accounts}
        for holding in holdings:
            if not holding.borrowed:
                self.add(holding.quota_id, holding.owner_id, holding.amounts, running=holding.running)

    def add(self, quota_id: int, owner_id: int, amounts: Amounts, *, running: bool = False) -> None:
        """Count one more holder."""
        for account in self._above.get(quota_id, ()):
            self._quotas.setdefault(account.id, Used()).add(amounts)
            if account.id in self._claimed:
                self._claimed[account.id].add(amounts)
        purse = self._purse(quota_id, owner_id)
        self._people.setdefault(purse, Used()).add(amounts)
        if purse in self._claimed:
            self._claimed[purse].add(amounts)
        if not running:
            self.pending[quota_id] = self.pending.get(quota_id, 0) + 1

    def add_between(self, quota_id: int, owner_id: int, amounts: Amounts) -> None:
        """Count a holder that may use what is set aside for others."""
        levels = [level for level in self.levels_of(quota_id, owner_id) if level in self._claimed]
        claimed = {level: self._claimed[level].copy() for level in levels}
        self.add(quota_id, owner_id, amounts)
        for level, before in claimed.items():
            before.at_least(self._used(level))
            self._claimed[level] = before

    def set_aside(self, request: Waiting) -> tuple[list[Level], bool]:
        """Reserve for a waiting request what is left of its limits.

        Return those where it waits, and whether anything was left.  That of its person comes first, then its
        quota's and those above; above the first one that it would pass nothing is set aside: what makes room
        below makes as much above.
        """
        account = self._accounts[request.quota_id]
        limits = [
            account.limits_of(request.owner_id),
            *(each.limits for each in self._above[request.quota_id]),
        ]
        found: list[Level] = []
        any_left = False
        for level, most in zip(self.levels_of(request.quota_id, request.owner_id), limits, strict=True):
            if most == FREE:
                continue
            claimed = self._claimed.get(level)
            if claimed is None:
                claimed = self._claimed[level] = self._used(level).copy()
            found.append(level)
            enough, anything = claimed.set_aside(most, request.shape.amounts)
            any_left = any_left or anything
            if not enough:
                break
        return found, any_left

    def levels_of(self, quota_id: int, owner_id: int) -> list[Level]:
        """Return the limits that hold for a person in a quota: theirs, the quota's, and those above."""
        return [self._purse(quota_id, owner_id), *(each.id for each in self._above.get(quota_id, ()))]

    def _used(self, level: Level) -> Used:
        return self._quotas.get(level, NONE) if isinstance(level, int) else self._people.get(level, NONE)

    def left_of_types(self, request: Waiting, *, claims: bool = False) -> dict[str, int]:
        """Return how many GPUs of each type with a limit a request may draw; with `claims` beside those
        that are set aside for others.
        """
        left: dict[str, int] = {}
        for each in self._above[request.quota_id]:
            if not each.limits.gpus_by_type:
                continue
            used = self._claimed.get(each.id) if claims else None
            by_type = (used or self._quotas.get(each.id, NONE)).gpus_by_type
            for kind, most in each.limits.gpus_by_type.items():
                here = max(0, most - by_type.get(kind, 0))
                left[kind] = min(left.get(kind, here), here)
        return left

    def lowest_of_type(self, quota_id: int, kind: str) -> tuple[Account, int]:
        """Return the quota with the least left of a type of GPU, and how many of them are in use there."""
        above = [each for each in self._above[quota_id] if kind in each.limits.gpus_by_type]
        used = {each.id: self._quotas.get(each.id, NONE).gpus_by_type.get(kind, 0) for each in above}
        least = min(above, key=lambda each: each.limits.gpus_by_type[kind] - used[each.id])
        return least, used[least.id]

    def most_of_types(self, quota_id: int) -> dict[str, int]:
        """Return the lowest limit of each type of GPU that holds in a quota."""
        most: dict[str, int] = {}
        for each in self._above[quota_id]:
            for kind, limit in each.limits.gpus_by_type.items():
                most[kind] = min(most.get(kind, limit), limit)
        return most

    def by_quota(self) -> Mapping[int, Used]:
        """Return usage by quota, those below included; quotas without usage are absent."""
        return self._quotas

    def of_person(self, quota_id: int, owner_id: int) -> Used:
        """Return a person's usage in the quota; public quotas count together."""
        return self._people.get(self._purse(quota_id, owner_id), NONE)

    def _purse(self, quota_id: int, owner_id: int) -> Purse:
        """Return the key of a person's sum; all public quotas share one."""
        account = self._accounts.get(quota_id)
        return (0 if account is not None and account.public else quota_id, owner_id)

    def never(self, request: Waiting) -> tuple[Why, Params] | None:
        """Why no limit would let the request through even if nothing were held."""
        account = self._accounts[request.quota_id]
        amounts, gpus = request.shape.amounts, request.shape.gpu_count
        found = over(account.limits_of(request.owner_id), NONE, amounts, gpus)
        if found is not None:
            return Why.EXCEEDS_QUOTA, _params(account, found, of_person=True)
        for each in self._above[request.quota_id]:
            found = over(each.limits, NONE, amounts, gpus) or self._over_all_types(each, NONE, amounts)
            if found is not None:
                return Why.EXCEEDS_QUOTA, _params(each, found)
        return None

    def refuses(self, request: Waiting) -> tuple[Why, Params] | None:
        """Why the request would pass a limit now."""
        account = self._accounts[request.quota_id]
        amounts, gpus = request.shape.amounts, request.shape.gpu_count
        if gpus:
            for each in self._above[request.quota_id]:
                if not each.hours_left:
                    return Why.HOURS, {"quota": each.name}
        used = self._people.get(self._purse(request.quota_id, request.owner_id), NONE)
        found = over(account.limits_of(request.owner_id), used, amounts, gpus)
        if found is not None:
            return Why.PERSON, _params(account, found, of_person=True)
        for each in self._above[request.quota_id]:
            used = self._quotas.get(each.id, NONE)
            found = over(each.limits, used, amounts, gpus) or self._over_all_types(each, used, amounts)
            if found is not None:
                return Why.QUOTA, _params(each, found)
        return None

    def find_reserved_limit(self, request: Waiting) -> tuple[Level, str] | None:
        """Return the limit of which too much is set aside for others to let the request through now, and
        its quota's name; None where there is room beside them.
        """
        if not self._claimed:
            return None
        account = self._accounts[request.quota_id]
        amounts, gpus = request.shape.amounts, request.shape.gpu_count
        purse = self._purse(request.quota_id, request.owner_id)
        claimed = self._claimed.get(purse)
        mine = account.limits_of(request.owner_id)
        if claimed is not None and over(mine, claimed, amounts, gpus) is not None:
            return purse, account.name
        for each in self._above[request.quota_id]:
            claimed = self._claimed.get(each.id)
            if claimed is not None and (
                over(each.limits, claimed, amounts, gpus) or self._over_all_types(each, claimed, amounts)
            ):
                return each.id, each.name
        return None

    def _over_all_types(self, account: Account, used: Used, amounts: Amounts) -> Over | None:
        """The limits of all types together, for GPUs of any type: what they leave of what there is.

        Limits above what there is refuse nothing: then the nodes have too few.
        """
        most, any_type = account.limits.gpus_by_type, amounts.gpus.get("", 0)
        if not any_type or not most or self._types is None or not set(self._types) <= set(most):
            return None
        if all(there <= most[kind] for kind, there in self._types.items()):
            return None
        limit = sum(min(most[kind], there) for kind, there in self._types.items())
        has = sum(
            min(most[kind], there, used.gpus_by_type.get(kind, 0)) for kind, there in self._types.items()
        )
        wanted = any_type + sum(amounts.gpus.get(kind, 0) for kind in self._types)
        kind = next(iter(self._types)) if len(self._types) == 1 else "gpu"
        return (kind, wanted, has, limit) if wanted + has > limit else None

    def passes_without(self, level: Level, request: Waiting, freed: Iterable[Amounts]) -> bool:
        """Whether the request would pass a limit's check once `freed` is not held under it any more."""
        account = self._accounts[level if isinstance(level, int) else request.quota_id]
        limits = account.limits if isinstance(level, int) else account.limits_of(request.owner_id)
        used = self._used(level).copy()
        for amounts in freed:
            used.add(amounts, -1)
        shape = request.shape
        found = over(limits, used, shape.amounts, shape.gpu_count)
        return found is None and (
            not isinstance(level, int) or self._over_all_types(account, used, shape.amounts) is None
        )


def _lineage(accounts: Mapping[int, Account], quota_id: int) -> Iterable[Account]:
    """The quota and everything above it."""
    seen: set[int] = set()
    next_id: int | None = quota_id
    while next_id is not None and next_id in accounts and next_id not in seen:
        seen.add(next_id)
        yield accounts[next_id]
        next_id = accounts[next_id].parent_id


def _params(account: Account, found: Over, *, of_person: bool = False) -> Params:
    kind, wanted, used, limit = found
    params: Params = {"quota": account.name, "kind": kind, "wanted": wanted, "used": used, "limit": limit}
    if of_person:
        params["of"] = "person"
    return params
