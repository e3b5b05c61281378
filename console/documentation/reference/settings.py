"""The page of settings: every environment variable, with its meaning, its unit and its default."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from console.configuration.config import env
from console.configuration.env import Variable
from console.documentation.reference.table import table

INTRODUCTION = """\
# Settings

Everything is set by environment variables; an empty one has its default. A secret may also come from the
file that the variable with `_FILE` at its end names. What cannot be understood stops the start with a
sentence; what does not fit together is a system check with an id (checks.md).
"""


def page() -> str:
    """Return the whole page: a table for each group, in the order in which the settings ask for them."""
    variables = list(env.variables.values())
    order = {group: number for number, group in enumerate(dict.fromkeys(each.group for each in variables))}
    variables.sort(key=lambda each: order[each.group])
    tables = (_table(group, rows) for group, rows in groupby(variables, key=lambda each: each.group))
    return "\n".join([INTRODUCTION, *tables])


def _table(group: str, variables: Iterable[Variable]) -> str:
    rows = ((f"`{each.name}`", each.about, each.kind, _default(each.default)) for each in variables)
    return f"## {group}\n\n{table(('variable', 'meaning', 'value', 'default'), rows)}"


def _default(text: str) -> str:
    return f"`{text}`" if text and " " not in text else text or "none"
