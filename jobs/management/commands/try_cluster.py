"""`manage.py try_cluster NAME`: whether everything is there that jobs on a cluster need."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs.backends.base import Checking, Unreachable
from jobs.engines import NoSuchBackend, backend_for
from quotas.models import Cluster


class Command(BaseCommand):
    """Ends in failure, and says what is missing, where something is."""

    help = "Try whether everything is there that jobs on a cluster need, on its free nodes too."

    def add_arguments(self, parser: CommandParser) -> None:
        """The cluster's short name."""
        parser.add_argument("cluster")

    def handle(self, *args: Any, **options: Any) -> None:
        """Try it."""
        cluster = Cluster.objects.filter(slug=options["cluster"]).first()
        if cluster is None:
            raise CommandError(f"There is no cluster {options['cluster']}.")
        try:
            backend = backend_for(cluster)
            if not isinstance(backend, Checking):
                raise CommandError(
                    f"Clusters of the kind {cluster.backend} need nothing that could be tried."
                )
            checked = backend.check()
        except (NoSuchBackend, Unreachable) as error:
            raise CommandError(str(error)) from error
        if checked.lacking:
            raise CommandError("\n".join(checked.lacking))
        self.stdout.write(f"Everything is there. Tried: {', '.join(checked.nodes)}")
