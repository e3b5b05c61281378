"""`manage.py support_bundle FILE`: what a stranger needs to find what is wrong, without secrets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from console.management import support_bundle


class Command(BaseCommand):
    """Write the bundle; it works while other parts of the console are down."""

    help = "Write versions, settings, checks, health and the ends of the console's logs into a ZIP, masked."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="the ZIP to write; it must not exist")

    def handle(self, *args: Any, **options: Any) -> None:
        """Write it for nobody else to read."""
        path: Path = options["file"]
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise CommandError(f"{path} can't be written: {error.strerror}.") from error
        with os.fdopen(descriptor, "wb") as file:
            support_bundle.write(file)
        self.stdout.write(f"{path} is written. Look through it before you send it.")
