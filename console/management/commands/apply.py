"""`manage.py apply site.yaml`: make workspaces, members, quotas, nodes, specs and prices as a file says."""

from __future__ import annotations

import sys
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

DIFFERS: Final = 2
"""The exit status of `--diff` where something would change, as with diff(1) but for trouble, which is 1."""


class Command(BaseCommand):
    """Repeating it changes nothing."""

    help = "Makes workspaces, members, quotas, nodes, GPU types, specs and prices as site.yaml says."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="The file; - is standard input.")
        parser.add_argument(
            "--diff", action="store_true", help="Only say what would change; exits 2 when something would."
        )
        parser.add_argument(
            "--prune", action="store_true", help="Also remove what the file's parts do not name."
        )
        parser.add_argument("--revision", default="", help="The file's revision, for the audit log.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            data = sys.stdin.buffer.read() if options["file"] == "-" else Path(options["file"]).read_bytes()
        except OSError as error:
            raise CommandError(f"{options['file']}: {error.strerror}") from error
        try:
            applied = apply(
                read(decode(data)),
                prune=options["prune"],
                dry=options["diff"],
                revision=options["revision"],
            )
        except Wrong as wrong:
            lines = [f"{options['file']}:{fault}" for fault in wrong.faults]
            raise CommandError("\n".join(lines)) from wrong
        except Refused as refused:
            raise CommandError("\n".join(map(problem_message, refused.problems))) from refused
        tell(self.stdout, applied, dry=options["diff"])
        if options["diff"] and applied.changes:
            sys.exit(DIFFERS)


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
