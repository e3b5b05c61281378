"""`manage.py settings_table`: the page of settings, made from the settings themselves."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from django.core.management.base import BaseCommand

from console.configuration.config import env
from console.configuration.env import Variable

_INTRODUCTION = """\
# Settings

Everything is set by environment variables; an empty one has its default. A secret may also come from the
file that the variable with `_FILE` at its end names. What cannot be understood stops the start with a
sentence; what does not fit together is a system check with an id (docs/checks.md).
"""


class Command(BaseCommand):
    """Print the page."""

    help = "Prints every environment variable with its meaning, its unit and its default, as Markdown."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(markdown(env.variables.values()), ending="")


def markdown(variables: Iterable[Variable]) -> str:
    """The page: one table a group, groups and variables in the order in which they were first asked for."""
    listed = list(variables)
    order = {group: number for number, group in enumerate(dict.fromkeys(each.group for each in listed))}
    listed.sort(key=lambda each: order[each.group])
    tables = (_table(group, rows) for group, rows in groupby(listed, key=lambda each: each.group))
    return "\n".join([_INTRODUCTION, *tables])


def _table(group: str, rows: Iterable[Variable]) -> str:
    lines = [f"| `{row.name}` | {row.about} | {row.kind} | {_default(row.default)} |" for row in rows]
    return "\n".join(
        [f"## {group}", "", "| variable | meaning | value | default |", "|---|---|---|---|", *lines, ""]
    )


def _default(text: str) -> str:
    return f"`{text}`" if text and " " not in text else text or "none"
