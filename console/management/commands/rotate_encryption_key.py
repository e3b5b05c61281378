"""`manage.py rotate_encryption_key`: encrypt everything that is encrypted at rest under the newest key."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from console.management import reencryption


class Command(BaseCommand):
    """Says per column how many rows it changed; repeating it after an interruption goes on where it was."""

    help = "Encrypt stored secrets under the first key of keys/fernet, so that the others can be removed."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--batch",
            type=int,
            default=reencryption.BATCH,
            help="rows in one transaction (default: %(default)s)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Encrypt and report."""
        if options["batch"] < 1:
            raise CommandError("A batch has one row at least.")
        changed = 0
        for column in reencryption.COLUMNS:
            progress = reencryption.reencrypt(column, options["batch"])
            changed += progress.changed
            if progress.changed or progress.unreadable:
                self.stdout.write(_describe(progress))
        self.stdout.write(f"{changed} rows encrypted under the newest key.")


def _describe(progress: reencryption.Progress) -> str:
    lost = f", {progress.unreadable} can be read with none of the keys" if progress.unreadable else ""
    return f"{progress.column}: {progress.changed} rows{lost}"
