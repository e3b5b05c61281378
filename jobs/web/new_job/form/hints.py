"""Hints of the form: the rules' statements and the backend's support, by field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from jobs import submission
from jobs.backends import registry
from jobs.backends.support import Fate, find_row, find_support
from jobs.dialects.base import Action, Parsed, Problem, Refused
from jobs.form import rules
from jobs.form.fields import Field, Rows
from jobs.form.rules import FieldState, Ruling
from jobs.form.subfields import MapMember
from jobs.form.target import JobTarget, add_datasets, describe_target, find_kinds
from jobs.messages.problems import problem_message
from jobs.messages.rules import origin_label, rule_message
from jobs.messages.support import support_message
from jobs.submission.checks import feasibility
from quotas.models import Quota, User

_SHOWN: Final = {Fate.KEPT, Fate.APPROXIMATED, Fate.REFUSED}
NEVER_EFFECTIVE: Final = frozenset({"description"})
"""Fields that are for readers on every cluster."""

FIRST_FIELD: Final[Mapping[str, str]] = {
    "roles": "roles-*-name",
    "code": "code-uri",
    "registry_auth": "registry-username",
    "reserve_after": "keep-for",
    "roles[].bid": "roles-*-bid-discount",
    "roles[].nodes": "roles-*-nodes-only",
    "env": "env",
    "roles[].init_containers[].command": "roles-*-init-containers",
    "roles[].init_containers[].image": "roles-*-init-containers",
    "roles[].sidecars[].command": "roles-*-sidecars",
    "roles[].sidecars[].image": "roles-*-sidecars",
    "mounts[].uri": "mounts",
    "mounts[].id": "datasets",
    "mounts[].options": "mounts",
    "mounts[].read_only": "datasets",
}
"""The field that shows a hint about several fields."""


@dataclass(frozen=True, slots=True)
class FieldHint:
    """A sentence beside a field, and its source; `broken`: the job violates it.
    `actions` are ways out of it.
    """

    text: str
    source: str
    broken: bool = False
    actions: tuple[Action, ...] = ()


class Hinted:
    """Something with hints beside it: violations of rules, and tips."""

    __slots__ = ()
    hints: tuple[FieldHint, ...]

    @property
    def violations(self) -> tuple[FieldHint, ...]:
        """The hints about violations of rules."""
        return tuple(each for each in self.hints if each.broken)

    @property
    def tips(self) -> tuple[FieldHint, ...]:
        """The hints that are no violations."""
        return tuple(each for each in self.hints if not each.broken)


@dataclass(frozen=True, slots=True)
class TargetHints(Hinted):
    """Hints about something that is no field."""

    id: str
    hints: tuple[FieldHint, ...]


@dataclass(frozen=True, slots=True)
class TargetState:
    """The target of a job, and the resulting state of each field.

    `states` are by the rules' own paths; `never` is what the cluster will never run.  Without a `quota`
    nothing is known of the place.
    """

    quota: Quota | None = None
    target: JobTarget = field(default_factory=JobTarget)
    states: Mapping[str, FieldState] = field(default_factory=dict)
    never: tuple[Problem, ...] = ()

    def is_hidden(self, each: Field) -> bool:
        """Whether the field means nothing here."""
        return any(state.hidden for state in self._around(each))

    def closing_hint(self, each: Field) -> FieldHint | None:
        """Why the field can't be used here; None where it can."""
        why = next((state.why for state in self._around(each) if state.off and state.why), None)
        return make_hint(why) if why else None

    def options(self, each: Field) -> tuple[str, ...] | None:
        """The values that are left; None for any."""
        state = self.states.get(_path(each))
        return state.options if state else None

    def hints(self, each: Field | Rows, role: int = 0) -> tuple[FieldHint, ...]:
        """Return the hints about a field, violations first."""
        paths = [_path(each), *(path for path, key in FIRST_FIELD.items() if key == each.key)]
        found = [self.states[path] for path in dict.fromkeys(paths) if path in self.states]
        never = (each for each in self.never if _is_at(each, paths, role))
        ruled = (make_hint(ruling) for state in found for ruling in state.rulings if _concerns(ruling, role))
        return (*(FieldHint(problem_message(each), "", True, each.actions) for each in never), *ruled)

    def hints_of(self, *paths: str) -> TargetHints:
        """Return the hints about these paths that are no fields: the resource type, the source."""
        found = [self.states[path] for path in paths if path in self.states]
        return TargetHints("place", tuple(make_hint(ruling) for state in found for ruling in state.rulings))

    def support(self, each: Field | Rows) -> str:
        """Return how the backend treats the field, "" where it honours it."""
        if self.quota is None or not each.path:
            return ""
        found = find_support(registry.support_of(self.target.backend), _path(each))
        if found and found.fate is not Fate.KEPT and self.is_unused(each):
            return support_message(Fate.KEPT)
        return support_message(found.fate, found.why) if found and found.fate in _SHOWN else ""

    def is_unused(self, each: Field | Rows) -> bool:
        """Tell whether the field has no effect on the target's cluster."""
        if self.quota is None or not each.path or each.key in NEVER_EFFECTIVE:
            return False
        table, path = registry.support_of(self.target.backend), _path(each)
        row = find_row(table, path)
        if row is None:
            return False
        if table[row].members is not None and path != row:
            return path.removeprefix(f"{row}.") not in (table[row].members or ())
        return table[row].fate is Fate.KEPT

    def _around(self, each: Field) -> Iterator[FieldState]:
        """Yield the states of the field and of the values around it."""
        names = _path(each).split(".")
        for count in range(len(names), 0, -1):
            state = self.states.get(".".join(names[:count]))
            if state is not None:
                yield state


NO_TARGET: Final = TargetState()


def find_target_state(user: User, parsed: Parsed | None, place: str) -> TargetState:
    """Return the job's target, and the rules' statements about the job there."""
    if parsed is None:
        return NO_TARGET
    spec = parsed.spec
    try:
        quota = submission.find_quota(user, submission.parse_target(place), spec)
    except Refused:
        return NO_TARGET
    target = add_datasets(describe_target(quota, kinds=find_kinds(quota)), user, spec)
    never = feasibility.problems_of_file(user, quota, parsed)
    return TargetState(quota, target, rules.fields(rules.rulings(spec, target)), never)


def make_hint(ruling: Ruling) -> FieldHint:
    """Return a ruling as a hint, with its source."""
    rule, statement = ruling.rule, ruling.statement
    return FieldHint(
        rule_message(rule.code, statement.params), origin_label(rule.pages, rule.section), statement.broken
    )


def _concerns(ruling: Ruling, role: int) -> bool:
    """Whether it is about this role, where it is about single ones."""
    statement = ruling.statement
    return not (statement.at and statement.field.startswith("roles[]")) or role in statement.at


def _is_at(problem: Problem, paths: Iterable[str], role: int) -> bool:
    """Whether the problem is about the field at one of the paths, of this role."""
    steps = problem.pointer.split("/")[1:]
    numbers = [int(step) for step in steps if step.isdigit()]
    of_role = steps[0] != "roles" or numbers[:1] == [role]
    names = ".".join(step for step in steps if not step.isdigit())
    return of_role and any(names == path.replace("[]", "") for path in paths)


def _path(each: Field | Rows) -> str:
    """A field's pointer as the rules write it: `/roles/*/bid/price_micro` is `roles[].bid.price_micro`."""
    path = ".".join(step for step in each.path.split("/") if step).replace(".*", "[]")
    member = each.subfield if isinstance(each, Field) else None
    return f"{path}.{member.name}" if isinstance(member, MapMember) else path
