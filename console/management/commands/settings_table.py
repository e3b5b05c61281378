"""`manage.py settings_table`: docs/settings.md, made from the settings themselves."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from console.config import env
from console.env import Variable
from console.home import CHECKOUT

PAGE = CHECKOUT / "docs" / "settings.md"

_INTRODUCTION = """\
# Settings

Everything is set by environment variables; an empty one has its default. A secret may also come from the
file that the variable with `_FILE` at its end names. What cannot be understood stops the start with a
sentence; what does not fit together is a [system check](checks.md) with an id.

This page is made by `manage.py settings_table --write`.
"""


class Command(BaseCommand):
    """Prints the page; with `--write` saves it, with `--check` fails when the saved one differs."""

    help = "Prints, saves or checks docs/settings.md."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--write", action="store_true", help="Save it to docs/settings.md.")
        what.add_argument(
            "--check", action="store_true", help="Fail when docs/settings.md is not up to date."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        page = markdown(env.variables.values())
        if options["write"]:
            PAGE.write_text(page, encoding="utf-8")
        elif options["check"]:
            if not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != page:
                raise CommandError("docs/settings.md is out of date: `manage.py settings_table --write`.")
        else:
            self.stdout.write(page, ending="")


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
