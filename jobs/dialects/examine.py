"""What the JSON parser lets pass and no job file may hold: repeated keys, impossible numbers and text.

Runs only over a text in which something looked suspicious; everything wrong is found at once.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Final

from jobs.dialects.base import Params
from jobs.dialects.spans import Node, escape, walk
from jobs.dialects.syntax import Cause

INVISIBLE: Final = re.compile(r"[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
"""Characters of no width and those that turn the direction of reading: two names may look the same."""

MAX_INTEGER: Final = 2**53 - 1
"""What every JSON reader holds exactly (RFC 8259 section 6; Joi's `integer` in OpenPAI v0.14)."""

MAX_REPORTED: Final = 100
"""Nobody reads more problems than this."""

DUPLICATE: Final = "duplicate_key"

_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


def examine(top: Node, text: str, *, repeats: bool = False) -> Iterator[tuple[str, Cause]]:
    """Each fault of the tree `top` of strict JSON `text`, with its pointer; at most 100.

    With `repeats`, a key may be repeated where no text is replaced (see `repeated`).
    """
    allowed = set(repeated(top, text)) if repeats else set()
    faults = (fault for fault in _faults(top, text) if fault[1].code != DUPLICATE or fault[0] not in allowed)
    for count, fault in enumerate(faults):
        if count == MAX_REPORTED:
            return
        yield fault


def repeated(top: Node, text: str) -> Iterator[str]:
    """Pointers of repeated keys that replace nothing but numbers, booleans and null.

    Of repeated keys the last counts, as in JavaScript.  A text may be a secret, and stays a fault.
    """
    for pointer, node in walk(top):
        texts = {key for key, _offset, old in node.repeats if text[old.start] in '"{['}
        for key in dict.fromkeys(key for key, _offset, _old in node.repeats):
            if key not in texts:
                yield f"{pointer}/{escape(key)}"


def _faults(top: Node, text: str) -> Iterator[tuple[str, Cause]]:
    for pointer, node in walk(top):
        for key, offset, _old in node.repeats:
            yield f"{pointer}/{escape(key)}", Cause(DUPLICATE, offset, {"key": key})
        for key, child in (node.members or {}).items():
            cause = _key_fault(key, child.key_start)
            if cause:
                yield pointer, cause
        if node.members is None and node.items is None:
            cause = _scalar_fault(text[node.start : node.end], node.start)
            if cause:
                yield pointer, cause


def _key_fault(key: str, offset: int) -> Cause | None:
    """What is wrong with one key, if anything; told of the object, since the key can't be shown."""
    if _SURROGATE.search(key):
        return Cause("lone_surrogate", offset)
    if "\0" in key:
        return Cause("null_character", offset)
    if found := INVISIBLE.search(key):
        params: Params = {"character": f"U+{ord(found[0]):04X}", "key": INVISIBLE.sub("", key)}
        return Cause("invisible_key", offset, params)
    return None


def _scalar_fault(literal: str, offset: int) -> Cause | None:
    """What is wrong with one scalar as it is written, if anything."""
    if literal.startswith('"'):
        value = json.loads(literal, strict=False) if "\\" in literal else literal
        if _SURROGATE.search(value):
            return Cause("lone_surrogate", offset)
        return Cause("null_character", offset) if "\0" in value else None
    if literal in ("true", "false", "null"):
        return None
    if literal in ("NaN", "Infinity", "-Infinity"):
        return Cause("not_a_number", offset, {"word": literal})
    return None if _fits(literal) else Cause("number_too_big", offset, {"digits": len(literal.lstrip("-"))})


def _fits(number: str) -> bool:
    """Whether every JSON reader can hold the number."""
    if number.lstrip("-").isdigit():
        return len(number) <= len(str(MAX_INTEGER)) + 1 and abs(int(number)) <= MAX_INTEGER
    return math.isfinite(float(number))
