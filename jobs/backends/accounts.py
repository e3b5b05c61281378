"""What an engine's own accounting allows: accounts in a tree, people in them, qualities of service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Ceilings:
    """How much at most; None is no ceiling.  GPUs by type are bounded beside all of them."""

    cpus: int | None = None
    memory_mib: int | None = None
    gpus: int | None = None
    gpus_by_type: Mapping[str, int] = field(default_factory=dict)
    jobs: int | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """An account: what all of it may hold, what each person in it may, and what else is said of it.

    `parent` is '' for those at the top; `people` are UNIX names.  `more` are limits for which nobody but the
    engine has a word, by the engine's words.
    """

    name: str
    parent: str = ""
    people: Sequence[str] = ()
    all_of_it: Ceilings = Ceilings()
    jobs_of_one: int | None = None
    qos: Sequence[str] = ()
    more: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Quality:
    """A quality of service, what one person may hold in it, and what else it limits."""

    name: str
    priority: int = 0
    of_one: Ceilings = Ceilings()
    more: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Books:
    """All of it; `more` is what belongs to no account."""

    accounts: Sequence[Account] = ()
    qualities: Sequence[Quality] = ()
    more: Sequence[str] = ()


@runtime_checkable
class Accounting(Protocol):
    """A backend whose engine keeps such accounts."""

    def books(self) -> Books:
        """All of them; nothing where the engine keeps none.  Raises Unreachable."""

    def limit(self, account: str, ceilings: Ceilings, jobs_of_one: int | None) -> None:
        """Give an account that is there these ceilings; those that are None stay as they are.

        Raises Unreachable, also for what the engine does not take.
        """
