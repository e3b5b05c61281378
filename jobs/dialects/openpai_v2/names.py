"""Names that the rules allow, each its own."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from itertools import islice
from typing import Final

_LOOKED_AT: Final = 50
_LONGEST: Final = 60


def free(name: str, taken: Collection[str]) -> str:
    """`name`, with a number behind it when it is taken."""
    number, candidate = 2, name
    while candidate in taken:
        candidate, number = f"{name}_{number}", number + 1
    return candidate


def nearest(name: str, known: Collection[str]) -> str | None:
    """The one of the `known` names that `name` most resembles; of many only the first are looked at."""
    some = [str(each)[:_LONGEST] for each in islice(known, _LOOKED_AT)]
    close = difflib.get_close_matches(name[:_LONGEST], some, 1)
    return next((each for each in islice(known, _LOOKED_AT) if close and each[:_LONGEST] == close[0]), None)
