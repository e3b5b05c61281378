"""Templates such as `<% $parameters.x %>` in commands, and their values.

OpenPAI puts values in as text.  A secret's value must not become part of a command, which everybody may
read, so that a shell variable stands in its place, quoted as the place needs it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from jobs.dialects import placeholders
from jobs.dialects.expansion_limit import ExpansionAllowance
from jobs.dialects.openpai_v2.part import find_nearest
from jobs.dialects.patterns import compile_pattern
from jobs.dialects.variables import as_text

TEMPLATE: Final = compile_pattern(r"<%\s*(?P<path>\$[A-Za-z]\w*(?:\.[^\s<>%.\[\]]+|\[\d+\])*+)\s*%>")
SECRETS: Final = "$secrets"
ROOTS: Final = ("$parameters", SECRETS, "$script", "$output", "$data")

_INDEX: Final = re.compile(r"\[(\d+)\]")
_MISSING: Final = object()
_SHELL: Final = re.compile(r"\\.|['\"]", re.DOTALL)
_NOT_IN_NAMES: Final = re.compile(r"\W", re.ASCII)

Context = Mapping[str, object]
"""The values of the roots."""


@dataclass(slots=True)
class Resolved:
    """A text with its templates resolved.

    `secrets` maps shell variables that the text now uses to the names of secrets; `unresolved` are the
    paths that stand for nothing, `wanted` the secrets that the file does not hold.  With `is_too_long` the
    text stayed as it was: there was no room for what it refers to.
    """

    text: str
    secrets: dict[str, str] = field(default_factory=dict)
    unresolved: list[str] = field(default_factory=list)
    wanted: list[str] = field(default_factory=list)
    is_too_long: bool = False


def resolve(text: str, context: Context, room: ExpansionAllowance) -> Resolved:
    """Return `text` with the templates resolved that stand for something, while there is room."""
    if "<%" not in text:
        return Resolved(text)
    if room.is_exceeded:
        return Resolved(text, is_too_long=True)
    done = Resolved("")
    parts: list[str] = []
    last, quote = 0, ""
    for match in TEMPLATE.finditer(text):
        before = text[last : match.start()]
        quote = _quote_after(before, quote)
        parts.append(before)
        said = _resolve_path(match["path"], context, done)
        if said is not None and not room.take(len(said)):
            return Resolved(text, is_too_long=True)
        secret = placeholders.reference(said) if said is not None else None
        if secret:
            variable = variable_for(secret)
            done.secrets[variable] = secret
            parts.append(_QUOTED[quote].format(variable))
        else:
            parts.append(match[0] if said is None else said)
        last = match.end()
    done.text = "".join(parts) + text[last:]
    return done


def whole_path(text: str) -> str | None:
    """Return the path of the one template that `text` consists of; None when it is anything else."""
    match = TEMPLATE.fullmatch(text.strip())
    return match["path"] if match else None


def nearest_path(path: str, context: Context) -> str | None:
    """Return the path nearest to `path` that stands for something."""
    root, *rest = _tokens(path)
    held = context.get(root)
    if not isinstance(held, Mapping) or len(rest) != 1:
        return None
    close = find_nearest(rest[0], held)
    return f"{root}.{close}" if close else None


def replace_path(text: str, path: str, other: str) -> str:
    """Return `text` with the templates of exactly `path` asking for the `other` one."""
    return TEMPLATE.sub(
        lambda match: match[0].replace(path, other) if match["path"] == path else match[0], text
    )


def variable_for(secret: str) -> str:
    """Return the shell variable that carries a secret into a command."""
    return f"SECRET_{_NOT_IN_NAMES.sub('_', secret)}"


def _resolve_path(path: str, context: Context, done: Resolved) -> str | None:
    """Return the value of a path as text; a path without one is remembered."""
    tokens = _tokens(path)
    if tokens[0] not in ROOTS:
        return None
    said = _as_text(_lookup(tokens, context))
    if said is not None:
        return said
    if tokens[0] == SECRETS and len(tokens) == 2 and _is_name(tokens[1]):
        done.wanted.append(tokens[1])
        return placeholders.placeholder(tokens[1])
    done.unresolved.append(path)
    return None


def _is_name(name: str) -> bool:
    return placeholders.reference(placeholders.placeholder(name)) == name


def _tokens(path: str) -> list[str]:
    return (_INDEX.sub(r".\1", path) if "[" in path else path).split(".")


def _lookup(steps: list[str], context: Context) -> object:
    held: object = context
    for step in steps:
        if isinstance(held, Mapping):
            held = held.get(step, _MISSING)
        elif isinstance(held, list):
            held = held[int(step)] if step.isdigit() and int(step) < len(held) else _MISSING
        elif not (isinstance(held, str) and step == "0"):  # the first of a list that is one text
            return _MISSING
    return held


def _as_text(value: object) -> str | None:
    if value is _MISSING or value is None or isinstance(value, Mapping):
        return None
    if isinstance(value, list):
        return ",".join(as_text(item) for item in value)
    return as_text(value)


_QUOTED: Final = {"": '"${{{}}}"', '"': "${{{}}}", "'": "'\"${{{}}}\"'"}
"""A variable where no quotes are open, in double ones, and in single ones."""


def _quote_after(text: str, quote: str) -> str:
    """Return the quote that is open behind `text`, when `quote` was open before it."""
    for match in _SHELL.finditer(text):
        mark = match[0]
        if mark[0] == "\\" and quote != "'":
            continue
        if mark[0] == "\\":  # no escape between single quotes: the second character counts
            mark = mark[1]
        if mark == quote:
            quote = ""
        elif not quote and mark in "'\"":
            quote = mark
    return quote
