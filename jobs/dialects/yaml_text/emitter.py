"""Values as YAML that people like to read: block style, plain words where safe, scripts in blocks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from jobs.dialects.yaml_text.rules import means_text

STEP: Final = 2
"""Blanks for each level."""

_NOT_FIRST: Final = re.compile(r"[\s,\[\]{}#&*!|>'\"%@`]|[-?:](?:\s|$)|---|\.\.\.")
_NOT_PLAIN: Final = re.compile(r":(?:\s|$)|\s#|\s$")
_NOT_IN_FLOW: Final = re.compile(r"[,\[\]{}:?]")
_UNPRINTABLE: Final = re.compile(
    r"[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_BREAKS: Final = re.compile(r"[\n\t]")


def write(document: object) -> str:
    """Return a whole document, with a line break at its end."""
    text = block(document, -STEP).lstrip("\n").lstrip(" ")
    return text + "\n"


def block(value: object, indent: int) -> str:
    """Write a value behind `key:` of a key that is indented by `indent`, on its line or on those below."""
    if isinstance(value, (dict, list)) and value:
        inner = indent + STEP
        return "\n" + "\n".join(" " * inner + line for line in _members(value, inner))
    return " " + scalar(value, indent)


def item(value: object, indent: int) -> str:
    """Write a value behind the dash of an element whose dash is indented by `indent`."""
    if isinstance(value, (dict, list)) and value:
        inner = indent + STEP
        return " " + ("\n" + " " * inner).join(_members(value, inner))
    return " " + scalar(value, indent)


def _members(value: Mapping[str, object] | list[object], indent: int) -> list[str]:
    """Each member or element, without its first indentation."""
    if isinstance(value, list):
        return ["-" + item(inner, indent) for inner in value]
    return [f"{key_of(name)}:{block(inner, indent)}" for name, inner in value.items()]


def scalar(value: object, indent: int, style: str = "") -> str:
    """Return a text, number, word or empty collection; texts of several lines as a block below `indent`."""
    if not isinstance(value, str):
        return flow(value)
    if style in ("'", '"'):
        return quote(value, style)
    if "\n" in value and _fits_block(value):
        lines = value.split("\n")
        chomping = "-" if lines[-1] else ""
        gap = "\n" + " " * (indent + STEP)
        body = "".join(gap + line if line else "\n" for line in (lines if lines[-1] else lines[:-1]))
        return f"|{chomping}{body}"
    return value if is_plain(value) else quote(value, "'")


def flow(value: object) -> str:
    """Return a value on one line, with brackets."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key_of(name, True)}: {flow(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, str):
        return value if is_plain(value) and not _NOT_IN_FLOW.search(value) else quote(value, "'")
    written = json.dumps(value)
    return re.sub(r"^(-?\d+)e", r"\1.0e", written) if isinstance(value, float) else written


def key_of(name: str, in_flow: bool = False) -> str:
    """Return a key, in quotes where it needs them."""
    safe = is_plain(name) and "\n" not in name and not (in_flow and _NOT_IN_FLOW.search(name))
    return name if safe and len(name) < _LONGEST_KEY else quote(name, '"')


_LONGEST_KEY: Final = 100
_SHORT: Final = 40
"""Shorter words repeat in a file, so that what is known of them is kept."""


def quote(text: str, style: str) -> str:
    """Return a text in single quotes where they can hold it, unless double ones are asked for."""
    if style == "'" and not _BREAKS.search(text) and not _UNPRINTABLE.search(text):
        return "'" + text.replace("'", "''") + "'"
    written = json.dumps(text, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda match: _escape(match[0]), written)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def is_plain(text: str) -> bool:
    """Return whether every parser reads `text` without quotes as that text."""
    return _is_plain(text) if len(text) < _SHORT else _is_plain.__wrapped__(text)


@lru_cache(maxsize=4096)
def _is_plain(text: str) -> bool:
    return not (
        _NOT_FIRST.match(text)
        or _NOT_PLAIN.search(text)
        or _BREAKS.search(text)
        or _UNPRINTABLE.search(text)
        or not means_text(text)
    )


def _fits_block(text: str) -> bool:
    """Return whether a block can hold `text`: no blank begins it, and at most one line break ends it."""
    return text[0] not in " \t\n" and not text.endswith("\n\n") and not _UNPRINTABLE.search(text)
