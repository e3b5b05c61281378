"""What a rule is, and what it says about a field."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from jobs.form.ground import Ground
from jobs.spec import JobSpec

Params = Mapping[str, str | int]


class Page(StrEnum):
    """A page of PAI-DLC that names sections, fields, rules and warnings."""

    CHINESE = "zh"
    JAPANESE = "ja"  # the newer one


BOTH: Final = (Page.CHINESE, Page.JAPANESE)


class Section(StrEnum):
    """The sections of both pages."""

    BASIC = "basic"
    ENVIRONMENT = "environment"
    RESOURCES = "resources"
    FAULTS = "faults"
    ROLES = "roles"
    APPENDIX = "appendix"


class Effect(StrEnum):
    """What a rule does to a field.

    HIDE: it means nothing here.  OFF: it can't be used here.  BOUND and OFFER: which values it takes.
    TELL: something to know.
    """

    HIDE = "hide"
    OFF = "off"
    BOUND = "bound"
    OFFER = "offer"
    TELL = "tell"


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that a rule says about `field`, a path of JobSpec with `[]` for every element of a list.

    `broken`: the job says what the rule does not allow.  `at` are then the indexes of the elements that do;
    nothing is taken out of the job because of it.
    """

    field: str
    effect: Effect
    broken: bool = False
    at: tuple[int, ...] = ()
    least: int | None = None
    most: int | None = None
    step: int = 1
    options: tuple[str, ...] = ()
    params: Params = dataclasses.field(default_factory=dict)


Judge = Callable[[JobSpec, Ground], Iterator[Said]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, and on which pages, in which section it stands.

    A rule of the pages binds only a job that goes to PAI-DLC; `ours` are those that this console has too.
    """

    code: str
    section: Section
    judge: Judge
    pages: tuple[Page, ...] = BOTH
    ours: bool = False


@dataclass(frozen=True, slots=True)
class Ruling:
    """What a rule says about one field of one job."""

    rule: Rule
    said: Said

    @property
    def code(self) -> str:
        """The rule's."""
        return self.rule.code


def hide(field: str, *, broken: bool = False, at: tuple[int, ...] = (), **params: str | int) -> Said:
    """The field means nothing here."""
    return Said(field, Effect.HIDE, broken, at, params=params)


def off(field: str, *, broken: bool = False, at: tuple[int, ...] = (), **params: str | int) -> Said:
    """The field can't be used here."""
    return Said(field, Effect.OFF, broken, at, params=params)


def bound(
    field: str,
    *,
    least: int | None = None,
    most: int | None = None,
    step: int = 1,
    broken: bool = False,
    at: tuple[int, ...] = (),
    **params: str | int,
) -> Said:
    """The field takes numbers from `least` to `most`."""
    return Said(field, Effect.BOUND, broken, at, least, most, step, params=params)


def offer(
    field: str,
    options: tuple[str, ...],
    *,
    broken: bool = False,
    at: tuple[int, ...] = (),
    **params: str | int,
) -> Said:
    """The field takes one of `options`."""
    return Said(field, Effect.OFFER, broken, at, options=options, params=params)


def tell(field: str, *, broken: bool = False, at: tuple[int, ...] = (), **params: str | int) -> Said:
    """Something to know about the field."""
    return Said(field, Effect.TELL, broken, at, params=params)
