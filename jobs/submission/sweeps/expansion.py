"""Expansion of a sweep: one job for each combination of parameter values.

A parameter is a path into the JobSpec (`env.LR`, `roles.0.resources.gpus`), or a word that stands in braces
(`{lr}`) in commands and in the values of environment variables.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from pydantic import ValidationError

from jobs.dialects.base import MOST_JOBS, Problem
from jobs.dialects.expansion_limit import MAX_SWEEP, ExpansionAllowance
from jobs.spec import JobSpec

MOST: Final = MOST_JOBS
"""Jobs of one sweep."""

MOST_PARAMETERS: Final = 20
Values: TypeAlias = Mapping[str, Any]

_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAPS: Final = frozenset({"env", "tags", "labels", "options", "framework_options"})


class CannotSweepError(Exception):
    """The parameters make no jobs; `problems` say why, each once."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(problems[0].code)
        self.problems = problems


def combinations(grid: Mapping[str, Sequence[Any]], listed: Sequence[Values]) -> list[Values]:
    """Return every combination: of the grid, the first parameter changing slowest, or the listed ones."""
    if grid and listed:
        raise CannotSweepError(Problem("sweep_grid_or_list", "/parameters"))
    names = list(grid) or sorted({name for values in listed for name in values})
    if not names:
        raise CannotSweepError(Problem("sweep_without_parameters", "/parameters"))
    _limit(len(names), MOST_PARAMETERS)
    found: list[Values] = [dict(values) for values in listed]
    if grid:
        every = itertools.islice(itertools.product(*grid.values()), MOST + 1)
        found = [dict(zip(names, values, strict=True)) for values in every]
    _limit(len(found), MOST)
    if not found:
        raise CannotSweepError(Problem("sweep_without_parameters", "/parameters"))
    return found


def _limit(count: int, most: int) -> None:
    if count > most:
        problem = Problem("sweep_too_many", "/parameters", params={"count": count, "most": most})
        raise CannotSweepError(problem)


def kinds(found: Sequence[Values]) -> list[tuple[Values, int]]:
    """Return the combinations that may ask for different resources, each with the number of its jobs.

    Words in braces and environment variables change what a job does, not what it takes.
    """
    counts: dict[str, tuple[Values, int]] = {}
    for values in found:
        taken = {name: value for name, value in values.items() if not _is_text_only(name)}
        key = json.dumps(taken, sort_keys=True)
        first, count = counts.get(key, (values, 0))
        counts[key] = (first, count + 1)
    return list(counts.values())


def expand(spec: JobSpec, found: Sequence[Values], numbers: Sequence[int] | None = None) -> list[JobSpec]:
    """Return a job for each combination, its number after its name.  Raises CannotSweepError."""
    problems: dict[tuple[str, str], Problem] = {}
    made, room = [], ExpansionAllowance(MAX_SWEEP)
    for number, values in zip(numbers or range(1, len(found) + 1), found, strict=True):
        try:
            made.append(_with(spec, values, number, room))
        except CannotSweepError as error:
            if room.is_exceeded:
                raise
            for problem in error.problems:
                problems.setdefault((problem.code, problem.pointer), problem)
    if problems:
        raise CannotSweepError(*problems.values())
    return made


def _is_text_only(name: str) -> bool:
    return _is_word(name) or name.startswith("env.")


def _is_word(name: str) -> bool:
    """Tell whether it is a word in braces, not a path into the job."""
    return bool(_WORD.fullmatch(name)) and name not in JobSpec.model_fields


def _with(spec: JobSpec, values: Values, number: int, room: ExpansionAllowance) -> JobSpec:
    whole = spec.model_dump(mode="json")
    whole["name"] = f"{spec.name}-{number}"
    for name, value in values.items():
        if _is_word(name):
            _fill(whole, name, value, room)
        else:
            _assign(whole, name, value)
    text = json.dumps(whole)
    _make_room(room, len(text))
    try:
        return JobSpec.model_validate_json(text)
    except ValidationError as error:
        raise CannotSweepError(*_problems(error, values)) from error


def _fill(whole: dict[str, Any], name: str, value: Any, room: ExpansionAllowance) -> None:
    """Put the value where `{name}` stands."""
    mark, text = f"{{{name}}}", _as_text(value)
    places = [*_texts(whole)]
    if not any(mark in held[key] for held, key in places):
        raise CannotSweepError(_nowhere(name))
    _make_room(room, len(text) * sum(held[key].count(mark) for held, key in places))
    for held, key in places:
        held[key] = held[key].replace(mark, text)


def _make_room(room: ExpansionAllowance, length: int) -> None:
    if not room.take(length):
        raise CannotSweepError(Problem("sweep_too_large", "/parameters", params={"most": room.most}))


def _texts(whole: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield every text in which a word may stand: its parent object and key."""
    for variable in whole["env"]:
        yield whole["env"], variable
    for role in whole["roles"]:
        yield role, "command"
        for variable in role["env"]:
            yield role["env"], variable


def _assign(whole: dict[str, Any], path: str, value: Any) -> None:
    """Set what stands at the path; a map may get a new member."""
    *steps, last = path.split(".")
    held: Any = whole
    around = ""
    for step in steps:
        if isinstance(held, list) and step.isdigit() and int(step) < len(held):
            held = held[int(step)]
        elif isinstance(held, dict) and isinstance(held.get(step), dict | list):
            held = held[step]
        else:
            raise CannotSweepError(_nowhere(path))
        around = step
    if not isinstance(held, dict) or (last not in held and around not in _MAPS):
        raise CannotSweepError(_nowhere(path))
    held[last] = _as_text(value) if around in _MAPS else value


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _nowhere(name: str) -> Problem:
    return Problem("sweep_no_such_field", f"/parameters/{name}", params={"name": name})


def _problems(error: ValidationError, values: Values) -> Iterator[Problem]:
    """Yield a problem for each value that no job can have."""
    places = [".".join(map(str, each["loc"])) for each in error.errors(include_url=False)]
    named = [path for path in values if any(place.startswith(path) for place in places)]
    for name in named or [""]:
        shown = str(values.get(name, ""))[:60]
        yield Problem("sweep_wrong_value", f"/parameters/{name}", params={"name": name, "value": shown})
