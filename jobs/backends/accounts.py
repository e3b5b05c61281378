"""Accounts of an engine's own accounting: a tree of them, their people, and qualities of service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class AccountLimits:
    """Upper bounds; None is no limit.  GPUs by type are bounded beside all GPUs together."""

    cpus: int | None = None
    memory_mib: int | None = None
    gpus: int | None = None
    gpus_by_type: Mapping[str, int] = field(default_factory=dict)
    jobs: int | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """An account: the limits of all of it, of each person in it, and further ones.

    `parent` is '' for those at the top; `people` are UNIX names.  `more` are limits that only this engine
    knows, in the engine's words.
    """

    name: str
    parent: str = ""
    people: Sequence[str] = ()
    all_of_it: AccountLimits = AccountLimits()
    jobs_of_one: int | None = None
    qos: Sequence[str] = ()
    more: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class QualityOfService:
    """A quality of service, the limits of one person in it, and further ones."""

    name: str
    priority: int = 0
    of_one: AccountLimits = AccountLimits()
    more: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class AccountTree:
    """All accounts and qualities of service; `more` are limits that belong to no account."""

    accounts: Sequence[Account] = ()
    qualities: Sequence[QualityOfService] = ()
    more: Sequence[str] = ()


@runtime_checkable
class Accounting(Protocol):
    """A backend whose engine keeps such accounts."""

    def read_accounts(self) -> AccountTree:
        """Return all accounts; nothing where the engine keeps none.  Raises Unreachable."""

    def limit(self, account: str, limits: AccountLimits, jobs_of_one: int | None) -> None:
        """Set the limits of an existing account; those that are None stay as they are.

        Raises Unreachable, also for values that the engine refuses.
        """
