"""`manage.py try_cluster NAME`: check that a cluster has everything that jobs need."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs.backends.base import Checking, Person, Refused, Unreachable
from jobs.backends.measures import MeasuredElsewhere
from jobs.clusters import NoSuchBackend, backend_for
from jobs.messages import reason_message
from jobs.scheduling import prometheus
from quotas.models import Cluster, User


class Command(BaseCommand):
    """Fail and print what is missing, if anything is."""

    help = "Try whether everything is there that jobs on a cluster need, on its free nodes too."

    def add_arguments(self, parser: CommandParser) -> None:
        """The cluster's short name."""
        parser.add_argument("cluster")
        parser.add_argument(
            "--as", metavar="USER", dest="person", help="Run a small job of this person's there too."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Try it."""
        cluster = Cluster.objects.filter(slug=options["cluster"]).first()
        if cluster is None:
            raise CommandError(f"There is no cluster {options['cluster']}.")
        try:
            backend = backend_for(cluster)
            if isinstance(backend, MeasuredElsewhere) and backend.metrics_source is not None:
                for result in prometheus.check_queries(backend.metrics_source):
                    self.stdout.write(str(result))
            if not isinstance(backend, Checking):
                raise CommandError(
                    f"Clusters of the kind {cluster.backend} need nothing that could be tried."
                )
            checked = backend.check()
            for remark in checked.remarks:
                self.stdout.write(remark)
            if checked.lacking:
                raise CommandError("\n".join(checked.lacking))
            self.stdout.write(f"Everything is there. Tried: {', '.join(checked.nodes)}")
            if options["person"]:
                user = backend.try_as(_person(options["person"]))
                self.stdout.write(f"A job of {options['person']}'s ran as the UNIX user {user}.")
        except (NoSuchBackend, Unreachable) as error:
            raise CommandError(str(error)) from error
        except Refused as refused:
            raise CommandError(reason_message(refused.reason.code, refused.reason.params)) from refused


def _person(name: str) -> Person:
    user = User.objects.filter(username=name).first()
    if user is None:
        raise CommandError(f"There is nobody called {name}.")
    return Person(user.get_username(), user.pk, user.unix_name)
