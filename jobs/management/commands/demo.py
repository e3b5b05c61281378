"""`manage.py demo`: a console with example jobs, for trying it out and for benchmarks.  Nothing runs."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from jobs.management.commands._demo_data import files, make_jobs, make_places
from jobs.models import Job


class Command(BaseCommand):
    """Workspaces, members, quotas, and jobs in every state, on a cluster that takes no jobs."""

    help = "Fill the console with workspaces, members, quotas and jobs in every state; nothing is run."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--jobs", type=int, default=400, help="how many (400)")
        parser.add_argument("--yes", action="store_true", help="also on a console that has jobs")

    def handle(self, *args: Any, **options: Any) -> None:
        """Make the places, then the jobs, in batches of a transaction each."""
        if options["jobs"] < 1:
            raise CommandError("At least one job.")
        if Job.objects.exists() and not options["yes"]:
            raise CommandError("This console has jobs already; --yes adds a demonstration all the same.")
        began = time.monotonic()
        made = 0
        for made in make_jobs(options["jobs"], make_places(), files(), timezone.now()):
            if made % 100_000 == 0:
                self.stdout.write(f"{made:,} …")
        self.stdout.write(f"{made:,} jobs in {time.monotonic() - began:.0f} s.")
