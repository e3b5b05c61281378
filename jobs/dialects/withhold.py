"""Secrets anywhere in a vendor's request, taken out before it is read.

A secret is a string under a key that says so, the value of a name-and-value pair whose name says so, and
the password of a URI.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Final

from jobs.dialects import placeholders
from jobs.dialects.base import Params, Problem, Refused
from jobs.dialects.edit import Put
from jobs.dialects.fields import CONSOLE
from jobs.dialects.spans import escape, split
from jobs.dialects.variables import as_text

_PAIRS: Final = (("Name", "Value"), ("name", "value"), ("Key", "Value"), ("key", "value"))
MOST: Final = 1000
"""Secrets in one request."""

_HELD: Final = frozenset(held for _name, held in _PAIRS)
_looks_secret: Final = lru_cache(maxsize=1024)(placeholders.looks_secret)
"""A request's keys repeat in every role."""

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.\-]+")


@dataclass(slots=True)
class Withheld:
    """The request without its secrets: `edits` take them out of the text, `found` is pointer → name."""

    value: object
    secrets: dict[str, str] = field(default_factory=dict)
    edits: list[Put] = field(default_factory=list)
    found: dict[str, str] = field(default_factory=dict)


def withhold(
    value: object, keys: Collection[str], variables: Collection[str], plain: re.Pattern[str] | None = None
) -> Withheld:
    """Take the secrets out of `value`.

    `keys` hold a secret although they don't say so; members of `variables` are environment variables,
    whose secrets are called like them.  What `plain` matches is no secret (a template, say).
    """
    everything = (
        each for each in _secrets(value, "", keys, variables) if not (plain and plain.search(each[2]))
    )
    found = list(islice(everything, MOST + 1))
    if len(found) > MOST:
        params: Params = {"key": "secrets", "count": len(found), "most": MOST}
        raise Refused((Problem("too_many", "", 1, 1, params, source=CONSOLE),))
    held = Withheld(copy.deepcopy(value) if found else value)
    names = _Names()
    for pointer, name, secret, before, after in found:
        chosen = names.of(name, secret)
        held.secrets[chosen] = secret
        held.found[pointer] = chosen
        held.edits.append(Put(pointer, before + placeholders.placeholder(chosen) + after))
        _set(held.value, split(pointer), held.edits[-1].value)
    return held


Found = tuple[str, str, str, str, str]
"""Pointer, proposed name, the secret, and what stands before and after it in the same string."""


def _secrets(
    value: object, pointer: str, keys: Collection[str], variables: Collection[str]
) -> Iterator[Found]:
    if isinstance(value, dict):
        secretive = _secretive(value, keys)
        for key, inner in value.items():
            if key not in secretive and not _may_hold(inner):
                continue
            where = f"{pointer}/{escape(key)}"
            numbers = key in _HELD or pointer.rpartition("/")[2] in variables
            secret = _secret(inner, numbers=numbers) if key in secretive else None
            if secret is None:
                yield from _secrets(inner, where, keys, variables)
            elif secret and not placeholders.referenced(secret):
                yield where, _name(value, where, variables), secret, "", ""
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _secrets(inner, f"{pointer}/{index}", keys, variables)
    elif isinstance(value, str) and "@" in value:
        _uri, password = placeholders.split_password(value, "")
        if password:
            before, _, after = value.partition(f":{password}@")
            yield pointer, _name({}, pointer, variables), password, f"{before}:", f"@{after}"


def _may_hold(value: object) -> bool:
    """Whether there may be a secret inside of a value whose key holds none."""
    return isinstance(value, (dict, list)) or (isinstance(value, str) and "@" in value)


def _secret(value: object, *, numbers: bool) -> str | None:
    """The secret as text; None when it is no string, nor, where they count, a number."""
    if isinstance(value, str):
        return value
    return as_text(value) if numbers and isinstance(value, (int, float)) else None


def _secretive(value: Mapping[str, object], keys: Collection[str]) -> set[str]:
    """The keys that hold a secret."""
    found = {key for key in value if key in keys or _looks_secret(key)}
    for name, held in _PAIRS:
        said = value.get(name)
        if isinstance(said, str) and placeholders.looks_secret(said):
            found.add(held)
    return found


def _name(value: Mapping[str, object], pointer: str, variables: Collection[str]) -> str:
    """A name that tells the secret: the variable's, or the last keys on the way to it."""
    tokens = [token for token in split(pointer) if not token.isdigit()]
    for name, held in _PAIRS:
        if tokens[-1] == held and isinstance(value.get(name), str):
            return _NOT_IN_NAMES.sub("-", str(value[name]))[:150]
    plain = len(tokens) > 1 and tokens[-2] in variables
    return _NOT_IN_NAMES.sub("-", tokens[-1] if plain else ".".join(tokens[-2:]))[:150]


class _Names:
    """Names for secrets: one for equal secrets of one name, numbered ones for the others."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}

    def of(self, name: str, secret: str) -> str:
        """What the secret is called."""
        chosen = self._known.get((name, secret))
        if chosen is None:
            count = self._counts[name] = self._counts.get(name, 0) + 1
            chosen = name if count == 1 else f"{name}-{count}"
            self._known[name, secret] = chosen
        return chosen


def _set(value: object, tokens: list[str], new: object) -> None:
    """Put `new` at the place that `tokens` lead to."""
    for token in tokens[:-1]:
        value = value[int(token)] if isinstance(value, list) else value[token]  # type: ignore[index]
    if isinstance(value, list):
        value[int(tokens[-1])] = new
    elif isinstance(value, dict):
        value[tokens[-1]] = new
