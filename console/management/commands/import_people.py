"""`manage.py import_people people.csv`: add and change people, their workspaces and groups as a CSV says."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from console.management.commands.apply import add_links_argument, finish, problems_of, read_file
from console.site_yaml import tables
from console.site_yaml.import_plan import apply
from jobs.dialects.source import decode
from quotas.accounts.first_links import Delivery


class Command(BaseCommand):
    """Repeating it changes nothing; nobody is removed."""

    help = "Adds and changes people, with their workspaces and groups, as a CSV says."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file",
            help=f"The file; - is standard input. Columns: {', '.join(tables.TABLES['user'].columns)}.",
        )
        parser.add_argument(
            "--diff", action="store_true", help="Only say what would change; exits 2 when something would."
        )
        add_links_argument(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        with problems_of(options["file"]):
            text = decode(read_file(options["file"])).replace("\r\n", "\n")
            read = tables.read(text, tables.TABLES["user"])
            applied = apply(read, dry=options["diff"], name="people.csv")
        finish(self.stdout, applied, dry=options["diff"], links=Delivery(options["links"]))
