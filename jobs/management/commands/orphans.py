"""`manage.py orphans`: list, adopt or end jobs that run although the database does not know them."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs.backends.base import Unreachable
from jobs.scheduling import orphans
from jobs.scheduling.orphans import NotAdoptable
from quotas.audit.action_record import Actor
from quotas.models import User


class Command(BaseCommand):
    """Print nothing where there are none."""

    help = "List the jobs that run although the database, restored from a backup, does not know them."

    def add_arguments(self, parser: CommandParser) -> None:
        """What to do with one of them."""
        act = parser.add_mutually_exclusive_group()
        act.add_argument("--adopt", metavar="KEY", help="make it its owner's job again, with its log")
        act.add_argument("--kill", metavar="KEY", help="end it")
        parser.add_argument("--as", metavar="ADMIN", dest="admin", help="the admin who adopts or ends it")

    def handle(self, *args: Any, **options: Any) -> None:
        """List, adopt or end."""
        key = options["adopt"] or options["kill"]
        if not key:
            for each in orphans.find():
                self.stdout.write(f"{each.key}  {each.cluster.slug}  {each}")
            return
        orphan = orphans.get(key)
        if orphan is None:
            raise CommandError(f"There is no orphan {key}; `orphans` lists them.")
        actor = Actor(_find_admin(options["admin"]), why="manage.py orphans")
        try:
            if options["adopt"]:
                job = orphans.adopt(actor, orphan)
                self.stdout.write(f"{job.public_id} is a job of {job.owner} again.")
            else:
                orphans.end(actor, orphan)
                self.stdout.write(f"{orphan.key} is being ended.")
        except (NotAdoptable, Unreachable) as problem:
            raise CommandError(str(problem)) from problem


def _find_admin(name: str | None) -> User:
    admins = User.objects.filter(is_superuser=True, is_active=True)
    found = (admins.filter(username=name) if name else admins).order_by("pk").first()
    if found is None:
        raise CommandError(f"There is no admin {name or 'account'}.")
    return found
