"""Secrets of a v2 file, taken out before it is read on: `secrets`, logins, and what is told by its name."""

from __future__ import annotations

import re
from typing import Final

from jobs.dialects import placeholders
from jobs.dialects.base import Params, Problem, Refused
from jobs.dialects.edit import Put
from jobs.dialects.fields import CONSOLE
from jobs.dialects.openpai_v2 import keys
from jobs.dialects.openpai_v2.templates import TEMPLATE
from jobs.dialects.spans import escape
from jobs.dialects.variables import as_text
from jobs.dialects.withhold import MOST, Withheld, withhold

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.\-]+")
_PLAIN: Final = re.compile(rf"{TEMPLATE.pattern.replace('?P<path>', '')}|\$SECRET:|^\s*$")


def taken(value: dict[str, object]) -> Withheld:
    """The file's value without its secrets, and what takes them out of its text."""
    section = keys.SECRETS.key
    rest = {key: inner for key, inner in value.items() if key != section}
    held = withhold(rest, (), (keys.PARAMETERS.key,), _PLAIN)
    if section not in value:
        return held
    found = value[section]
    without = _without(found, f"/{section}", held) if isinstance(found, dict) else found
    assert isinstance(held.value, dict)
    held.value = {key: without if key == section else held.value[key] for key in value}
    return held


def _without(value: object, pointer: str, held: Withheld) -> object:
    """`value` with placeholders for every text and number in it."""
    if isinstance(value, dict):
        return {key: _without(inner, f"{pointer}/{escape(key)}", held) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without(inner, f"{pointer}/{index}", held) for index, inner in enumerate(value)]
    if value is None or isinstance(value, bool):
        return value
    secret = as_text(value)
    if placeholders.reference(secret) or _PLAIN.fullmatch(secret):
        return value
    if len(held.secrets) >= MOST:
        params: Params = {"key": keys.SECRETS.key, "count": MOST + 1, "most": MOST}
        raise Refused((Problem("too_many", "", 1, 1, params, source=CONSOLE),))
    name = _name(pointer, secret, held)
    held.secrets[name] = secret
    held.found[pointer] = name
    held.edits.append(Put(pointer, placeholders.placeholder(name)))
    return placeholders.placeholder(name)


def _name(pointer: str, secret: str, held: Withheld) -> str:
    """What the secret is called: as in the file, unless another one already is."""
    _, _, *tokens = pointer.split("/")
    name = _NOT_IN_NAMES.sub("-", ".".join(tokens))[:150]
    if held.secrets.get(name, secret) == secret:
        return name
    return f"secrets.{name}"
