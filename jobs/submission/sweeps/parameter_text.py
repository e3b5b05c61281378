"""The parameters of a sweep as people type them, on New job and on a command line.

A line `name = value, value` is a parameter; in a random search it may be `name = uniform(0, 1)`, and lines
`key: value` are settings of the sweep.  Or it is a JSON object of lists, or a JSON list of objects.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _

from jobs.messages import problem_message
from jobs.submission.sweeps import objective as objectives
from jobs.submission.sweeps import random_search
from jobs.submission.sweeps.expansion import CannotSweepError, Values
from jobs.submission.sweeps.objective import Objective
from jobs.submission.sweeps.random_search import Range

LONGEST: Final = 20_000
"""Characters of all parameters."""

_TRIALS: Final = "trials"
_SEED: Final = "seed"
_OBJECTIVE: Final = "objective"
_EARLY_STOP: Final = "early_stop"
_SETTINGS: Final[Mapping[str, tuple[re.Pattern[str], str]]] = {
    _TRIALS: (re.compile(r"([1-9][0-9]{0,5})"), "trials: 20"),
    _SEED: (re.compile(r"([0-9]{1,9})"), "seed: 1"),
    _OBJECTIVE: (re.compile(rf"(min|max) (\S.{{0,{objectives.LONGEST - 1}}})"), "objective: min val_loss"),
    _EARLY_STOP: (re.compile(r"([0-9]{1,9})(?: ([1-9][0-9]{0,2}))?"), "early_stop: 100 3"),
}
"""Settings of a sweep by key, as `key: value`: the form of the value, and an example.

Of `early_stop` the numbers are the first step and the number of other jobs.
"""

_RANGE: Final = re.compile(r"(uniform|log_uniform|int)\(([^,()]+),([^,()]+)\)")


class InvalidParameters(ValueError):
    """The text is no parameters; `messages` say why."""

    def __init__(self, *messages: str) -> None:
        super().__init__(*messages)
        self.messages = messages


@dataclass(frozen=True, slots=True)
class SweepValues:
    """The typed parameters: a grid, or combinations one by one."""

    grid: Mapping[str, Sequence[Any]]
    listed: Sequence[Values] = ()
    objective: Objective | None = None


def parse_parameters(text: str) -> SweepValues:
    """Return what the lines say, or a JSON object of lists, or a list of objects.

    Raises InvalidParameters.
    """
    return _json(text) if text.lstrip().startswith(("[", "{")) else _lines(text)


def _json(text: str) -> SweepValues:
    wrong = _("Must be a JSON list of objects or a JSON object of lists.")
    try:
        parsed = json.loads(text, parse_constant=_no_number)
        whole = json.dumps(parsed, ensure_ascii=False)
        whole.encode()  # half a character can't be stored
    except (ValueError, RecursionError) as error:
        raise InvalidParameters(wrong) from error
    if "\\u0000" not in whole:
        if isinstance(parsed, list) and all(isinstance(each, dict) for each in parsed):
            return SweepValues({}, parsed)
        if isinstance(parsed, dict) and all(isinstance(each, list) for each in parsed.values()):
            return SweepValues(parsed)
    raise InvalidParameters(wrong)


def _no_number(word: str) -> None:
    raise ValueError(word)


def _lines(text: str) -> SweepValues:
    grid: dict[str, Sequence[Any]] = {}
    ranges: dict[str, Range] = {}
    settings: dict[str, Sequence[str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if setting := _read_setting(line):
            settings.setdefault(*setting)
            continue
        name, equals, rest = (piece.strip() for piece in line.partition("="))
        if not (name and equals and rest):
            message = _("Line %(line)s is not a parameter with values. Example: env.LR = 0.1, 0.01.")
            raise InvalidParameters(message % {"line": number})
        if name in grid or name in ranges:
            message = _("Line %(line)s repeats %(name)s. Put all its values on one line.")
            raise InvalidParameters(message % {"line": number, "name": name[:80]})
        if drawn := _RANGE.fullmatch(rest):
            ranges[name] = _range(drawn, number)
        else:
            grid[name] = [_value(each.strip()) for each in next(csv.reader([rest], skipinitialspace=True))]
    return _combine(grid, ranges, settings)


def _read_setting(line: str) -> tuple[str, Sequence[str]] | None:
    """Return a setting's key and the parts of its value; None for a parameter.  Raises InvalidParameters."""
    key, colon, rest = (piece.strip() for piece in line.partition(":"))
    if not colon or key not in _SETTINGS:
        return None
    form, example = _SETTINGS[key]
    found = form.fullmatch(rest)
    if found is None:
        message = _("%(key)s has no valid value. Example: %(example)s")
        raise InvalidParameters(message % {"key": key, "example": example})
    return key, found.groups(default="")


def _range(drawn: re.Match[str], line: int) -> Range:
    try:
        return Range(random_search.Kind(drawn[1]), float(drawn[2]), float(drawn[3]))
    except ValueError as error:
        message = _("Line %(line)s has no valid range. Example: env.LR = log_uniform(1e-5, 0.1).")
        raise InvalidParameters(message % {"line": line}) from error


def _combine(
    grid: Mapping[str, Sequence[Any]], ranges: Mapping[str, Range], settings: Mapping[str, Sequence[str]]
) -> SweepValues:
    """Return the grid, or the combinations of a random search, with the objective."""
    objective = _read_objective(settings)
    if _TRIALS not in settings:
        if ranges:
            raise InvalidParameters(
                _("A range needs a number of trials. Add a line such as %(example)s.")
                % {"example": _SETTINGS[_TRIALS][1]}
            )
        return SweepValues(grid, objective=objective)
    choices = {name: Range(random_search.Kind.CHOICE, values=values) for name, values in grid.items()}
    seed = int(settings.get(_SEED, ("0",))[0])
    try:
        listed = random_search.draw({**choices, **ranges}, int(settings[_TRIALS][0]), seed)
    except CannotSweepError as error:
        raise InvalidParameters(*(problem_message(each) for each in error.problems)) from error
    return SweepValues({}, listed, objective)


def _read_objective(settings: Mapping[str, Sequence[str]]) -> Objective | None:
    if _OBJECTIVE not in settings:
        if _EARLY_STOP in settings:
            raise InvalidParameters(
                _("Early stop needs an objective. Add a line such as %(example)s.")
                % {"example": _SETTINGS[_OBJECTIVE][1]}
            )
        return None
    goal, metric = settings[_OBJECTIVE]
    if _EARLY_STOP not in settings:
        return Objective(metric, goal)
    after, jobs = settings[_EARLY_STOP]
    return Objective(metric, goal, float(after), int(jobs or 3))


def _value(word: str) -> Any:
    """A number or truth value where JSON would write it the same; else the word as it was typed."""
    try:
        value = json.loads(word, parse_constant=_no_number)
        same = not isinstance(value, str | list | dict) and json.dumps(value) == word
    except (ValueError, RecursionError):
        return word
    return value if same else word
