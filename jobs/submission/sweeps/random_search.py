"""Random search: combinations that are drawn from ranges, the same for the same seed."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from jobs.dialects.base import Problem
from jobs.submission.sweeps.expansion import MOST, MOST_PARAMETERS, CannotSweepError, Values

_TRIES: Final = 20
"""Draws for each job until its combination is a new one."""


class Kind(StrEnum):
    """A distribution of values."""

    CHOICE = "choice"
    UNIFORM = "uniform"
    LOG_UNIFORM = "log_uniform"
    INT = "int"


@dataclass(frozen=True, slots=True)
class Range:
    """The values of one parameter: `values` of a choice, else what lies between `low` and `high`, both in."""

    kind: Kind
    low: float = 0
    high: float = 0
    values: Sequence[Any] = ()

    @property
    def is_valid(self) -> bool:
        """Tell whether there is something to draw."""
        if self.kind is Kind.CHOICE:
            return bool(self.values)
        if not math.isfinite(self.high - self.low) or self.low > self.high:
            return False
        if self.kind is Kind.INT:
            return float(self.low).is_integer() and float(self.high).is_integer()
        return self.kind is Kind.UNIFORM or self.low > 0

    def draw(self, generator: random.Random) -> Any:
        """Return one value; numbers have 6 digits, which are short to read."""
        if self.kind is Kind.CHOICE:
            return generator.choice(self.values)
        if self.kind is Kind.INT:
            return generator.randint(int(self.low), int(self.high))
        if self.kind is Kind.UNIFORM:
            value = generator.uniform(self.low, self.high)
        else:
            value = math.exp(generator.uniform(math.log(self.low), math.log(self.high)))
        return min(self.high, max(self.low, float(f"{value:.6g}")))


def draw(ranges: Mapping[str, Range], trials: int, seed: int) -> list[Values]:
    """Return that many different combinations, or as many as there are.  Raises CannotSweepError."""
    wrong = [name for name, each in ranges.items() if not each.is_valid]
    if wrong:
        raise CannotSweepError(
            *(Problem("sweep_wrong_range", f"/parameters/{name}", params={"name": name}) for name in wrong)
        )
    for count, most in ((trials, MOST), (len(ranges), MOST_PARAMETERS)):
        if count > most:
            params = {"count": count, "most": most}
            raise CannotSweepError(Problem("sweep_too_many", "/parameters", params=params))
    generator = random.Random(seed)  # noqa: S311 repeatable, nothing secret
    found: dict[str, Values] = {}
    for _try in range(trials * _TRIES if ranges else 0):
        values = {name: each.draw(generator) for name, each in ranges.items()}
        found.setdefault(json.dumps(values), values)
        if len(found) == trials:
            break
    return list(found.values())
