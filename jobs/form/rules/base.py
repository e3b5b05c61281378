"""Rules of the form, and their statements about fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final

from jobs.form.target import JobTarget
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
    """The effect of a rule on a field.

    HIDE: it means nothing here.  OFF: it can't be used here.  BOUND and OFFER: which values it takes.
    TELL: something to know.
    """

    HIDE = "hide"
    OFF = "off"
    BOUND = "bound"
    OFFER = "offer"
    TELL = "tell"


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a rule about `field`, a path of JobSpec with `[]` for every element of a list.

    `broken`: the job violates the rule.  `at` are then the indexes of the elements that do; nothing is taken
    out of the job because of it.
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


Condition = Callable[[JobSpec, JobTarget], object]
Judge = Callable[[JobSpec, JobTarget], Iterable[Statement]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, and the pages and the section that have it.

    A rule of the pages binds only a job that goes to PAI-DLC; `ours` are those that this console has too.
    """

    code: str
    section: Section
    judge: Judge
    pages: tuple[Page, ...] = BOTH
    ours: bool = False


@dataclass(frozen=True, slots=True)
class Ruling:
    """A statement of a rule about one job."""

    rule: Rule
    statement: Statement

    @property
    def code(self) -> str:
        """The rule's code."""
        return self.rule.code


def _state(
    effect: Effect,
    field: str,
    *,
    broken: bool = False,
    at: tuple[int, ...] = (),
    least: int | None = None,
    most: int | None = None,
    step: int = 1,
    options: tuple[str, ...] = (),
    **params: str | int,
) -> Statement:
    return Statement(field, effect, broken, at, least, most, step, options, params)


hide = partial(_state, Effect.HIDE)
disable = partial(_state, Effect.OFF)
bound = partial(_state, Effect.BOUND)
offer = partial(_state, Effect.OFFER)
tell = partial(_state, Effect.TELL)


def when(condition: Condition, *statements: Statement) -> Judge:
    """Return a judge that makes the statements about the jobs and targets that meet the condition."""
    return lambda spec, target: statements if condition(spec, target) else ()
