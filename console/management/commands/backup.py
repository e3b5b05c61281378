"""`manage.py backup FILE`: database, keys, logs and uploads in one file, while the console runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from console.management import backup
from console.management.database_dump import DumpFailed
from jobs.client.wheel_builder import version


class Command(BaseCommand):
    """The file has the keys: whoever can read it can read every secret."""

    help = "Write database, keys, logs and uploads into a new file; the console may run meanwhile."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file", type=Path, help="a file that does not exist yet, for example console.tar.gz"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Write the file and say what it has."""
        applied = MigrationRecorder(connection).applied_migrations()
        try:
            manifest = backup.write(
                options["file"].absolute(),
                settings.CONSOLE_HOME,
                settings.DATABASES["default"],
                shared=settings.CONSOLE_SHARED_FOLDER,
                release=version(),
                made_at=timezone.now().isoformat(timespec="seconds"),
                migrations=sorted(f"{app}.{name}" for app, name in applied),
            )
        except FileExistsError as problem:
            raise CommandError(
                f"There is a file {options['file']} already: choose another name."
            ) from problem
        except (DumpFailed, OSError) as problem:
            raise CommandError(f"Nothing was backed up: {problem}") from problem
        size = options["file"].stat().st_size / (1 << 20)
        self.stdout.write(f"{options['file']}: {len(manifest.files)} files, {size:.1f} MiB.")
