"""The rules of PAI-DLC's two pages: relevant fields, allowed values and hints.

Pure functions of a job and its target.  The form shows their statements beside its fields, and a submitted
job gets them as notes.  They never change a job and never refuse one: a rule of the pages binds PAI-DLC, and
this console refuses what it can't run elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from jobs.dialects.base import Note
from jobs.form.rules import advanced, environment, faults, resources
from jobs.form.rules.base import Effect, Page, Rule, Ruling, Section, Statement
from jobs.form.target import JobTarget
from jobs.spec import JobSpec

__all__ = [
    "BY_CODE",
    "RULES",
    "Effect",
    "FieldState",
    "JobTarget",
    "Page",
    "Rule",
    "Ruling",
    "Section",
    "Statement",
    "fields",
    "notes",
    "rulings",
]

RULES: Final = (*environment.RULES, *resources.RULES, *advanced.RULES, *faults.RULES)
BY_CODE: Final = {rule.code: rule for rule in RULES}

OF_PAGES: Final = frozenset({"dlc", "dlc-params"})
"""The dialects of jobs that go to PAI-DLC."""

TOLD_BY_DIALECT: Final = frozenset(
    {
        "variables_most",
        "running_time",
        "option_of_framework",
        "ports_one_way",
        "ports_listed",
        "ports_not_masters",
        "ports_number",
        "roles_of_framework",
    }
)
"""Rules that the dialect itself checks, so that its own notes have them, with their lines."""


def rulings(spec: JobSpec, target: JobTarget) -> tuple[Ruling, ...]:
    """Return all statements of the rules about a job, in the order of the rules."""
    return tuple(Ruling(rule, statement) for rule in RULES for statement in rule.judge(spec, target))


@dataclass(frozen=True, slots=True)
class FieldState:
    """The state of a field under the rules.

    A field whose value violates a rule is never hidden or off: the value has to be seen to be removed.
    `why` is the ruling that hides or disables it, `rulings` are all others, violations first.  `options` None
    are any.
    """

    hidden: bool = False
    off: bool = False
    why: Ruling | None = None
    least: int | None = None
    most: int | None = None
    step: int = 1
    options: tuple[str, ...] | None = None
    rulings: tuple[Ruling, ...] = ()


def fields(found: Iterable[Ruling]) -> Mapping[str, FieldState]:
    """Return the state of each field that a rule is about."""
    by_field: dict[str, list[Ruling]] = {}
    for ruling in found:
        by_field.setdefault(ruling.statement.field, []).append(ruling)
    return {field: _state(group) for field, group in by_field.items()}


def _state(group: list[Ruling]) -> FieldState:
    broken = [each for each in group if each.statement.broken]
    closing = [each for each in group if each.statement.effect in {Effect.HIDE, Effect.OFF}]
    closed = closing if not any(each.statement.broken for each in closing) else []
    bounds = [each.statement for each in group if each.statement.effect is Effect.BOUND]
    offers = [each.statement.options for each in group if each.statement.effect is Effect.OFFER]
    hints = [each for each in group if each.statement.effect is Effect.TELL and not each.statement.broken]
    return FieldState(
        hidden=any(each.statement.effect is Effect.HIDE for each in closed),
        off=bool(closed),
        why=closed[0] if closed else None,
        least=max((each.least for each in bounds if each.least is not None), default=None),
        most=min((each.most for each in bounds if each.most is not None), default=None),
        step=max((each.step for each in bounds), default=1),
        options=_common(offers) if offers else None,
        rulings=(*broken, *hints),
    )


def _common(offers: list[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the options that every rule offers, in the order of the first."""
    return tuple(each for each in offers[0] if all(each in other for other in offers))


def notes(spec: JobSpec, target: JobTarget, dialect: str) -> tuple[Note, ...]:
    """Return a note for each rule that a submitted job violates and that applies to its dialect."""
    of_pages = dialect in OF_PAGES
    return tuple(
        Note(ruling.code, "", {**ruling.statement.params, "field": ruling.statement.field})
        for ruling in rulings(spec, target)
        if ruling.statement.broken
        and (ruling.rule.ours or of_pages)
        and not (of_pages and ruling.code in TOLD_BY_DIALECT)
    )
