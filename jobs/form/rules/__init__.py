"""The rules of PAI-DLC's two pages: which fields mean something, what they take, what to know about them.

Pure functions from a job and the ground that it would run on.  The form shows what they say beside its
fields, and the same ones speak when a job is submitted.  They never change a job and never refuse one: a
rule of the pages binds PAI-DLC, and what this console demands of its own is refused where it is demanded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from jobs.dialects.base import Note
from jobs.form.ground import Ground
from jobs.form.rules import advanced, environment, faults, resources
from jobs.form.rules.base import Effect, Page, Rule, Ruling, Said, Section
from jobs.spec import JobSpec

__all__ = [
    "BY_CODE",
    "RULES",
    "Effect",
    "FieldState",
    "Ground",
    "Page",
    "Rule",
    "Ruling",
    "Said",
    "Section",
    "fields",
    "notes",
    "rulings",
]

RULES: Final = (*environment.RULES, *resources.RULES, *advanced.RULES, *faults.RULES)
BY_CODE: Final = {rule.code: rule for rule in RULES}

OF_PAGES: Final = frozenset({"dlc", "dlc-params"})
"""The dialects of jobs that are bound for PAI-DLC, as far as their text says."""

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
"""What a text of theirs tells by itself, so that its own notes have it, with its line."""


def rulings(spec: JobSpec, ground: Ground) -> tuple[Ruling, ...]:
    """Everything that the rules say of a job, in their order."""
    return tuple(Ruling(rule, said) for rule in RULES for said in rule.judge(spec, ground))


@dataclass(frozen=True, slots=True)
class FieldState:
    """What the rules leave of a field.

    It is never hidden or off while it says something that it should not: it has to be seen to be taken out.
    `why` says why it is hidden or off, `told` everything else, what is broken first.  `options` None are
    any.
    """

    hidden: bool = False
    off: bool = False
    why: Ruling | None = None
    least: int | None = None
    most: int | None = None
    step: int = 1
    options: tuple[str, ...] | None = None
    told: tuple[Ruling, ...] = ()


FREE: Final = FieldState()


def fields(found: Iterable[Ruling]) -> Mapping[str, FieldState]:
    """The state of each field that some rule speaks of."""
    by_field: dict[str, list[Ruling]] = {}
    for ruling in found:
        by_field.setdefault(ruling.said.field, []).append(ruling)
    return {field: _state(those) for field, those in by_field.items()}


def _state(those: list[Ruling]) -> FieldState:
    broken = [each for each in those if each.said.broken]
    closing = [each for each in those if each.said.effect in {Effect.HIDE, Effect.OFF}]
    closed = closing if not any(each.said.broken for each in closing) else []
    bounds = [each.said for each in those if each.said.effect is Effect.BOUND]
    offers = [each.said.options for each in those if each.said.effect is Effect.OFFER]
    told = [each for each in those if each.said.effect is Effect.TELL and not each.said.broken]
    return FieldState(
        hidden=any(each.said.effect is Effect.HIDE for each in closed),
        off=bool(closed),
        why=closed[0] if closed else None,
        least=max((each.least for each in bounds if each.least is not None), default=None),
        most=min((each.most for each in bounds if each.most is not None), default=None),
        step=max((each.step for each in bounds), default=1),
        options=_common(offers) if offers else None,
        told=(*broken, *told),
    )


def _common(offers: list[tuple[str, ...]]) -> tuple[str, ...]:
    """What every rule offers, in the order of the first."""
    return tuple(each for each in offers[0] if all(each in other for other in offers))


def notes(spec: JobSpec, ground: Ground, dialect: str) -> tuple[Note, ...]:
    """What is worth a word when a job is submitted: what it says against the rules that concern it."""
    of_pages = dialect in OF_PAGES
    return tuple(
        Note(ruling.code, "", {**ruling.said.params, "field": ruling.said.field})
        for ruling in rulings(spec, ground)
        if ruling.said.broken
        and (ruling.rule.ours or of_pages)
        and not (of_pages and ruling.code in TOLD_BY_DIALECT)
    )
