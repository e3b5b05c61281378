"""What is held under each quota and by each person in it, against the ceilings of both.

A reservation counts in its own quota and in everything above; what is borrowed counts nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quotas.admission.values import Account, Holding, Limits, Params, Waiting, Why
from quotas.amounts import Amounts


class Used:
    """A running sum."""

    __slots__ = ("cpu_milli", "gpus", "gpus_by_type", "jobs", "memory_mib")

    def __init__(self) -> None:
        self.cpu_milli = self.memory_mib = self.gpus = self.jobs = 0
        self.gpus_by_type: dict[str, int] = {}

    def add(self, amounts: Amounts) -> None:
        """Count one more holder."""
        self.cpu_milli += amounts.cpu_milli
        self.memory_mib += amounts.memory_mib
        self.jobs += 1
        for kind, count in amounts.gpus.items():
            self.gpus += count
            self.gpus_by_type[kind] = self.gpus_by_type.get(kind, 0) + count


NONE = Used()
Over = tuple[str, int, int, int]
"""Which kind of resource: what is wanted, what is used, and the ceiling."""


def over(limits: Limits, used: Used, amounts: Amounts, gpu_count: int) -> Over | None:
    """The first ceiling that `amounts` would pass beside what is used; None when all of it fits."""
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


class Books:
    """The sums of one pass: of every quota with what hangs below it, and of every person in each quota."""

    def __init__(self, accounts: Mapping[int, Account], holdings: Iterable[Holding]) -> None:
        self._accounts = accounts
        self._quotas: dict[int, Used] = {}
        self._people: dict[tuple[int, int], Used] = {}
        self.pending: dict[int, int] = {}
        self._above = {key: tuple(_lineage(accounts, key)) for key in accounts}
        for holding in holdings:
            if not holding.borrowed:
                self.add(holding.quota_id, holding.owner_id, holding.amounts, running=holding.running)

    def add(self, quota_id: int, owner_id: int, amounts: Amounts, *, running: bool = False) -> None:
        """Count one more holder."""
        for account in self._above.get(quota_id, ()):
            self._quotas.setdefault(account.id, Used()).add(amounts)
        self._people.setdefault(self._purse(quota_id, owner_id), Used()).add(amounts)
        if not running:
            self.pending[quota_id] = self.pending.get(quota_id, 0) + 1

    def by_quota(self) -> Mapping[int, Used]:
        """What is held under each quota, itself and below; those with nothing are absent."""
        return self._quotas

    def of_person(self, quota_id: int, owner_id: int) -> Used:
        """What a person holds in the quota; in public ones, in all of them."""
        return self._people.get(self._purse(quota_id, owner_id), NONE)

    def _purse(self, quota_id: int, owner_id: int) -> tuple[int, int]:
        """Where a person's sum is kept: all public quotas share one."""
        account = self._accounts.get(quota_id)
        return (0 if account is not None and account.public else quota_id, owner_id)

    def never(self, request: Waiting) -> tuple[Why, Params] | None:
        """Why no ceiling would let the request through even if nothing were held."""
        account = self._accounts[request.quota_id]
        amounts, gpus = request.shape.amounts, request.shape.gpu_count
        found = over(account.person, NONE, amounts, gpus)
        if found is not None:
            return Why.EXCEEDS_QUOTA, _params(account, found, of_person=True)
        for each in self._above[request.quota_id]:
            found = over(each.limits, NONE, amounts, gpus)
            if found is not None:
                return Why.EXCEEDS_QUOTA, _params(each, found)
        return None

    def refuses(self, request: Waiting, amounts: Amounts | None = None) -> tuple[Why, Params] | None:
        """Why the request would pass a ceiling now; with `amounts`, for GPUs whose types are known by now."""
        account = self._accounts[request.quota_id]
        if amounts is None:
            amounts = request.shape.amounts
        gpus = request.shape.gpu_count
        used = self._people.get(self._purse(request.quota_id, request.owner_id), NONE)
        found = over(account.person, used, amounts, gpus)
        if found is not None:
            return Why.PERSON, _params(account, found, of_person=True)
        for each in self._above[request.quota_id]:
            found = over(each.limits, self._quotas.get(each.id, NONE), amounts, gpus)
            if found is not None:
                return Why.QUOTA, _params(each, found)
            if gpus and not each.hours_left:
                return Why.HOURS, {"quota": each.name}
        return None


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
