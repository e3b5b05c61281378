"""What the rules, and the backend on which the job would run, say of the form's fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from jobs import submission
from jobs.dialects.base import Action, Parsed, Problem, Refused
from jobs.form import rules
from jobs.form.applied import Fate, applied
from jobs.form.fields import Field, Rows
from jobs.form.ground import Ground, ground_of, kinds_beside, with_data
from jobs.form.rules import FieldState, Ruling
from jobs.form.within import Member
from jobs.messages.applied import applied_message
from jobs.messages.problems import problem_message
from jobs.messages.rules import origin_label, rule_message
from jobs.submission import feasibility
from quotas.models import Quota, User

_SHOWN: Final = {Fate.KEPT, Fate.APPROXIMATED, Fate.REFUSED}

FIRST: Final[Mapping[str, str]] = {
    "roles": "roles-*-name",
    "code": "code-uri",
    "registry_auth": "registry-username",
    "reserve_after": "keep-for",
    "roles[].bid": "roles-*-bid-discount",
    "roles[].nodes": "roles-*-nodes-only",
    "env": "env",
    "mounts[].uri": "mounts",
    "mounts[].id": "datasets",
    "mounts[].options": "mounts",
    "mounts[].read_only": "datasets",
}
"""Where something is told that is about several fields."""


@dataclass(frozen=True, slots=True)
class Told:
    """A sentence beside a field, and whose word it is; `broken`: the job says what it does not allow.
    `actions` are ways out of it.
    """

    text: str
    source: str
    broken: bool = False
    actions: tuple[Action, ...] = ()


class Spoken:
    """What has sentences beside it: the job is against some of them, and the others are good to know."""

    __slots__ = ()
    told: tuple[Told, ...]

    @property
    def warned(self) -> tuple[Told, ...]:
        """What the job says against the rules."""
        return tuple(each for each in self.told if each.broken)

    @property
    def known(self) -> tuple[Told, ...]:
        """What is good to know."""
        return tuple(each for each in self.told if not each.broken)


@dataclass(frozen=True, slots=True)
class Sentences(Spoken):
    """What is told of something that is no field."""

    id: str
    told: tuple[Told, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """Where the job would run, and what follows from that for each field.

    `states` are by the rules' own paths; `never` is what the cluster will never run.  Without a `quota`
    nothing is known of the place.
    """

    quota: Quota | None = None
    ground: Ground = field(default_factory=Ground)
    states: Mapping[str, FieldState] = field(default_factory=dict)
    never: tuple[Problem, ...] = ()

    def hidden(self, each: Field) -> bool:
        """Whether the field means nothing here."""
        return any(state.hidden for state in self._around(each))

    def closed(self, each: Field) -> Told | None:
        """Why the field can't be used here; None where it can."""
        why = next((state.why for state in self._around(each) if state.off and state.why), None)
        return told(why) if why else None

    def options(self, each: Field) -> tuple[str, ...] | None:
        """The values that are left; None for any."""
        state = self.states.get(_path(each))
        return state.options if state else None

    def told(self, each: Field | Rows, role: int = 0) -> tuple[Told, ...]:
        """What there is to know about the field, what is wrong with it first."""
        paths = [_path(each), *(path for path, key in FIRST.items() if key == each.key)]
        found = [self.states[path] for path in dict.fromkeys(paths) if path in self.states]
        never = (each for each in self.never if _is_at(each, paths, role))
        ruled = (told(ruling) for state in found for ruling in state.told if _concerns(ruling, role))
        return (*(Told(problem_message(each), "", True, each.actions) for each in never), *ruled)

    def of(self, *paths: str) -> Sentences:
        """The same of what is no field: the resource type, the source."""
        found = [self.states[path] for path in paths if path in self.states]
        return Sentences("place", tuple(told(ruling) for state in found for ruling in state.told))

    def fate(self, each: Field | Rows) -> str:
        """What the backend does with the field where that is not what it says; "" where it is."""
        if self.quota is None or not each.path:
            return ""
        found = applied(self.ground.backend, _path(each))
        return applied_message(found.fate, found.why) if found and found.fate in _SHOWN else ""

    def _around(self, each: Field) -> Iterator[FieldState]:
        """The states of the field and of what it is a part of."""
        names = _path(each).split(".")
        for count in range(len(names), 0, -1):
            state = self.states.get(".".join(names[:count]))
            if state is not None:
                yield state


NOWHERE: Final = Standing()


def standing(user: User, parsed: Parsed | None, place: str) -> Standing:
    """Where the job would go, and what the rules say of it there."""
    if parsed is None:
        return NOWHERE
    spec = parsed.spec
    try:
        quota = submission.find_quota(user, submission.place_at(place), spec)
    except Refused:
        return NOWHERE
    ground = with_data(ground_of(quota, kinds=kinds_beside(quota)), user, spec)
    never = feasibility.problems_of_file(user, quota, parsed)
    return Standing(quota, ground, rules.fields(rules.rulings(spec, ground)), never)


def told(ruling: Ruling) -> Told:
    """What a rule says, and where it stands."""
    rule, said = ruling.rule, ruling.said
    return Told(rule_message(rule.code, said.params), origin_label(rule.pages, rule.section), said.broken)


def _concerns(ruling: Ruling, role: int) -> bool:
    """Whether it is about this role, where it is about single ones."""
    said = ruling.said
    return not (said.at and said.field.startswith("roles[]")) or role in said.at


def _is_at(problem: Problem, paths: Iterable[str], role: int) -> bool:
    """Whether the problem is about the field at one of the paths, of this role."""
    steps = problem.pointer.split("/")[1:]
    numbers = [int(step) for step in steps if step.isdigit()]
    of_role = steps[0] != "roles" or numbers == [role]
    names = ".".join(step for step in steps if not step.isdigit())
    return of_role and any(names == path.replace("[]", "") for path in paths)


def _path(each: Field | Rows) -> str:
    """A field's pointer as the rules write it: `/roles/*/bid/price_micro` is `roles[].bid.price_micro`."""
    path = ".".join(step for step in each.path.split("/") if step).replace(".*", "[]")
    member = each.within if isinstance(each, Field) else None
    return f"{path}.{member.name}" if isinstance(member, Member) else path
