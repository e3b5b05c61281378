"""`manage.py apply site.yaml`: make people, workspaces, quotas, nodes, prices and more as a file says."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser, OutputWrapper
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from console.site_yaml.import_plan import Applied, apply
from console.site_yaml.parser import Wrong, read
from jobs.dialects.base import Refused
from jobs.dialects.source import decode
from jobs.messages.problems import problem_message
from quotas.accounts import first_links
from quotas.accounts.first_links import Delivery

DIFFERS: Final = 2
"""The exit status of `--diff` where something would change, as with diff(1) but for trouble, which is 1."""


class Command(BaseCommand):
    """Repeating it changes nothing."""

    help = "Makes people, groups, workspaces, quotas, nodes, prices, templates and more as site.yaml says."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="The file; - is standard input.")
        parser.add_argument(
            "--diff", action="store_true", help="Only say what would change; exits 2 when something would."
        )
        parser.add_argument(
            "--prune", action="store_true", help="Also remove what the file's parts do not name."
        )
        parser.add_argument("--revision", default="", help="The file's revision, for the audit log.")
        add_links_argument(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        with problems_of(options["file"]):
            applied = apply(
                read(decode(read_file(options["file"]))),
                prune=options["prune"],
                dry=options["diff"],
                revision=options["revision"],
            )
        finish(self.stdout, applied, dry=options["diff"], links=Delivery(options["links"]))


def add_links_argument(parser: CommandParser) -> None:
    """Add the option that says how new people get their first link."""
    parser.add_argument(
        "--links",
        choices=[each.value for each in Delivery],
        default=Delivery.NONE.value,
        help="How new people get a one-time link to set a password: by mail, shown here, or none (default).",
    )


def read_file(name: str) -> bytes:
    """Return the bytes of a file, or of standard input for "-".  Raises CommandError."""
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}") from error


@contextmanager
def problems_of(name: str) -> Iterator[None]:
    """Raise CommandError with every problem of the file called `name`."""
    try:
        yield
    except Wrong as wrong:
        raise CommandError("\n".join(f"{name}:{fault}" for fault in wrong.faults)) from wrong
    except Refused as refused:
        raise CommandError("\n".join(map(problem_message, refused.problems))) from refused


def finish(out: OutputWrapper, applied: Applied, *, dry: bool, links: Delivery) -> None:
    """Print what changed and give new people their links; exit with `DIFFERS` where it only would."""
    tell(out, applied, dry=dry)
    if dry and applied.changes:
        sys.exit(DIFFERS)
    if links is Delivery.MAIL and first_links.parse_delivery(links) is not links:
        raise CommandError(_("No links were sent: set CONSOLE_MAIL, or use --links show."))
    for person, link in () if dry else first_links.deliver(applied.people, links):
        out.write(f"{person.get_username()}: {link}")


def tell(out: OutputWrapper, applied: Applied, *, dry: bool, same: str = "") -> None:
    """Print what changed, or would change; `same` where nothing does."""
    for change in applied.changes:
        out.write(str(change))
    for effect in applied.effects:
        out.write(f"! {effect}")
    count = len(applied.changes)
    if not count:
        out.write(same or _("No changes: everything matches the file."))
    elif dry:
        text = ngettext("%(count)s change would be made.", "%(count)s changes would be made.", count)
        out.write(text % {"count": count})
    else:
        text = ngettext("%(count)s change was made.", "%(count)s changes were made.", count)
        out.write(text % {"count": count})
