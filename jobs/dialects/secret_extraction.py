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
from jobs.dialects.base import refusal
from jobs.dialects.edit import SetValue
from jobs.dialects.fields import CONSOLE
from jobs.dialects.spans import escape, split
from jobs.dialects.variables import as_text

_PAIRS: Final = (("Name", "Value"), ("name", "value"), ("Key", "Value"), ("key", "value"))
MOST: Final = 1000
"""Secrets in one request."""

_HELD: Final = frozenset(held for _choose_name, held in _PAIRS)
_looks_secret: Final = lru_cache(maxsize=1024)(placeholders.looks_secret)
"""A request's keys repeat in every role."""

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.\-]+")


@dataclass(slots=True)
class Withheld:
    """The request without its secrets: `edits` take them out of the text, `found` is pointer → name."""

    value: object
    secrets: dict[str, str] = field(default_factory=dict)
    edits: list[SetValue] = field(default_factory=list)
    found: dict[str, str] = field(default_factory=dict)


def withhold(
    value: object, keys: Collection[str], variables: Collection[str], plain: re.Pattern[str] | None = None
) -> Withheld:
    """Take the secrets out of `value`.

    `keys` hold a secret although they don't say so; members of `variables` are environment variables,
    whose secrets are called like them.  What `plain` matches is no secret (a template, say).
    """
    everything = (
        each for each in _find_secrets(value, "", keys, variables) if not (plain and plain.search(each[2]))
    )
    found = list(islice(everything, MOST + 1))
    if len(found) > MOST:
        raise refusal("too_many", CONSOLE, key="secrets", count=len(found), most=MOST)
    held = Withheld(copy.deepcopy(value) if found else value)
    names: dict[str, dict[str, str]] = {}
    for pointer, name, secret, before, after in found:
        known = names.setdefault(name, {})  # one name for equal secrets, numbered ones for the others
        chosen = known.setdefault(secret, f"{name}-{len(known) + 1}" if known else name)
        held.secrets[chosen] = secret
        held.found[pointer] = chosen
        held.edits.append(SetValue(pointer, before + placeholders.placeholder(chosen) + after))
        _put_at(held.value, split(pointer), held.edits[-1].value)
    return held


Found = tuple[str, str, str, str, str]
"""Pointer, proposed name, the secret, and what stands before and after it in the same string."""


def _find_secrets(
    value: object, pointer: str, keys: Collection[str], variables: Collection[str]
) -> Iterator[Found]:
    if isinstance(value, dict):
        secretive = _find_secret_keys(value, keys)
        for key, inner in value.items():
            if key not in secretive and not _may_hold(inner):
                continue
            where = f"{pointer}/{escape(key)}"
            numbers = key in _HELD or pointer.rpartition("/")[2] in variables
            secret = _read_secret(inner, numbers=numbers) if key in secretive else None
            if secret is None:
                yield from _find_secrets(inner, where, keys, variables)
            elif secret and not placeholders.list_references(secret):
                yield where, _choose_name(value, where, variables), secret, "", ""
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _find_secrets(inner, f"{pointer}/{index}", keys, variables)
    elif isinstance(value, str) and "@" in value:
        _uri, password = placeholders.split_password(value, "")
        if password:
            before, _, after = value.partition(f":{password}@")
            yield pointer, _choose_name({}, pointer, variables), password, f"{before}:", f"@{after}"


def _may_hold(value: object) -> bool:
    """Return whether there may be a secret inside of a value whose key holds none."""
    return isinstance(value, (dict, list)) or (isinstance(value, str) and "@" in value)


def _read_secret(value: object, *, numbers: bool) -> str | None:
    """Return the secret as text; None when it is no string, nor, where they count, a number."""
    if isinstance(value, str):
        return value
    return as_text(value) if numbers and isinstance(value, (int, float)) else None


def _find_secret_keys(value: Mapping[str, object], keys: Collection[str]) -> set[str]:
    """Return the keys that hold a secret."""
    found = {key for key in value if key in keys or _looks_secret(key)}
    for name, held in _PAIRS:
        said = value.get(name)
        if isinstance(said, str) and placeholders.looks_secret(said):
            found.add(held)
    return found


def _choose_name(value: Mapping[str, object], pointer: str, variables: Collection[str]) -> str:
    """Return a name that tells the secret: the variable's, or the last keys on the way to it."""
    tokens = [token for token in split(pointer) if not token.isdigit()]
    for name, held in _PAIRS:
        if tokens[-1] == held and isinstance(value.get(name), str):
            return _NOT_IN_NAMES.sub("-", str(value[name]))[:150]
    plain = len(tokens) > 1 and tokens[-2] in variables
    return _NOT_IN_NAMES.sub("-", tokens[-1] if plain else ".".join(tokens[-2:]))[:150]


def _put_at(value: object, tokens: list[str], new: object) -> None:
    """Put `new` at the place that `tokens` lead to."""
    for token in tokens[:-1]:
        value = value[int(token)] if isinstance(value, list) else value[token]  # type: ignore[index]
    if isinstance(value, list):
        value[int(tokens[-1])] = new
    elif isinstance(value, dict):
        value[tokens[-1]] = new
