"""The meaning of plain words in YAML: the two parsers that job files are written for differ in it.

OpenPAI reads with js-yaml 3.13, Kubernetes with go-yaml 2 (by way of sigs.k8s.io/yaml).  Times stay text
in both of our readings: no job file means a date by one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from jobs.dialects.syntax import MAX_INTEGER, Cause

Scalar: TypeAlias = str | int | float | bool | None

_TRUE: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_NO_NUMBER: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_MAY_MEAN: Final = frozenset("0123456789+-.~nNtTfFyYoO")
"""First letters of words that may be more than text."""

MERGE: Final = "<<"
"""The plain key whose value's members are taken in."""

_SMALL: Final = 16
"""Numbers of fewer digits are held exactly by everything."""

_LONGEST: Final = 40
"""A number of more characters than this can't be held exactly by anything."""


@dataclass(frozen=True, slots=True)
class YamlRules:
    """The reading of plain words by one parser.

    `integer` and `decimal` match what it takes for numbers, underscores included.
    """

    name: str
    booleans: Mapping[str, bool]
    integer: re.Pattern[str]
    decimal: re.Pattern[str]


JS_YAML: Final = YamlRules(
    name="js-yaml 3.13",
    booleans=_TRUE,
    integer=re.compile(
        r"[-+]?(?:0|0b[01_]*[01]|0x[0-9a-fA-F_]*[0-9a-fA-F]|0[0-7_]*[0-7]"
        r"|[1-9](?:[0-9_]*[0-9])?(?::[0-5]?[0-9])*)",
        re.ASCII,
    ),
    decimal=re.compile(
        r"[-+]?(?:0|[1-9][0-9_]*)(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?"
        r"|\.[0-9_]*[0-9](?:[eE][-+]?[0-9]+)?",
        re.ASCII,
    ),
)
KUBERNETES: Final = YamlRules(
    name="go-yaml 2",
    booleans=_TRUE
    | {word: True for yes in ("y", "yes", "on") for word in (yes, yes.capitalize(), yes.upper())}
    | {word: False for no in ("n", "no", "off") for word in (no, no.capitalize(), no.upper())},
    integer=re.compile(r"[-+]?(?:0|0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|[1-9][0-9_]*)", re.ASCII),
    decimal=re.compile(r"[-+]?(?:\.[0-9_]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII),
)


def resolve(word: str, rules: YamlRules) -> Scalar | Cause:
    """Return the meaning of a plain word; a Cause (without its offset) where no job file can mean it."""
    if word and word[0] not in _MAY_MEAN:
        return word
    if len(word) < _SMALL and word.isdecimal() and word.isascii() and word[0] != "0":
        return int(word)
    if word in _NULL:
        return None
    if word in rules.booleans:
        return rules.booleans[word]
    if rules.integer.fullmatch(word):
        return _integer(word)
    if rules.decimal.fullmatch(word):
        return _decimal(word)
    if _NO_NUMBER.fullmatch(word):
        return Cause("not_a_number", 0, {"word": word})
    return word


def key_text(word: str, rules: YamlRules) -> str:
    """Return a plain key as both parsers hand it on: words and whole numbers by what they mean."""
    value = resolve(word, rules)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value) if isinstance(value, int) else word


def means_text(word: str) -> bool:
    """Return whether every parser takes the plain `word` for text, also those of YAML 1.1 and 1.2."""
    if word in ("=", MERGE) or _LIKE_A_NUMBER.fullmatch(word):
        return False
    return isinstance(resolve(word, KUBERNETES), str)


_LIKE_A_NUMBER: Final = re.compile(r"[-+.0-9][-+.:_0-9a-fA-FxXoOtTzZ ]*|[-+]?\.\w+", re.ASCII)


def _integer(word: str) -> int | Cause:
    digits = word.lstrip("+-").replace("_", "")
    if len(digits) > _LONGEST:
        return Cause("number_too_big", 0, {"digits": len(digits)})
    number = 0
    if ":" in digits:
        for part in digits.split(":"):
            number = number * 60 + int(part)
    else:
        number = (
            int(digits[2:] or "0", _BASES[digits[:2]])
            if digits[:2] in _BASES
            else int(digits, 8 if len(digits) > 1 and digits[0] == "0" else 10)
        )
    if number > MAX_INTEGER:
        return Cause("number_too_big", 0, {"digits": len(digits)})
    return -number if word.startswith("-") else number


_BASES: Final = {"0b": 2, "0x": 16, "0o": 8}


def _decimal(word: str) -> float | Cause:
    if len(word) > _LONGEST * 10:
        return Cause("number_too_big", 0, {"digits": len(word)})
    number = float(word.replace("_", ""))
    return number if math.isfinite(number) else Cause("number_too_big", 0, {"digits": len(word)})
