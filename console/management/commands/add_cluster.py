"""`manage.py add_cluster NAME`: what Admin, Clusters, Add does, for whoever works at a prompt."""

from __future__ import annotations

import json
import sys
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _

from jobs.engines import FACTORIES, BadSettings, backend_for
from quotas.admin.forms import ClusterForm
from quotas.audit import origin
from quotas.audit.origin import Origin
from quotas.models import Admission, Way

STANDARD_INPUT: Final = "-"


class Command(BaseCommand):
    """A cluster that is there already is left as it is, and that is a failure."""

    help = "Adds a cluster. Who may use it is said by quotas: manage.py apply."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster", metavar="NAME", help="The cluster's short name.")
        parser.add_argument(
            "--title", default="", help="What it is called on pages; the short name otherwise."
        )
        parser.add_argument("--backend", choices=sorted(FACTORIES), default="slurm")
        parser.add_argument("--region", default="", help="Where it stands, as people name it.")
        parser.add_argument("--admission", choices=Admission.values, default=Admission.ENGINE)
        parser.add_argument(
            "--config",
            default="{}",
            metavar="JSON",
            help="Its settings; - is standard input, for those that hold secrets.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Add it."""
        said = sys.stdin.read() if options["config"] == STANDARD_INPUT else options["config"]
        form = ClusterForm(
            {
                "slug": options["cluster"],
                "name": options["title"] or options["cluster"],
                "region": options["region"],
                "backend": options["backend"],
                "config": said,
                "admission": options["admission"],
                "enabled": True,
            }
        )
        if not form.is_valid():
            faults: dict[str, list[dict[str, str]]] = json.loads(form.errors.as_json())
            raise CommandError(
                "\n".join(f"{name}: {each['message']}" for name, told in faults.items() for each in told)
            )
        cluster = form.save(commit=False)
        try:
            backend_for(cluster)
        except BadSettings as error:
            raise CommandError(str(error)) from error
        with origin.of(Origin(Way.COMMAND, name=f"add_cluster {cluster.slug}")):
            cluster.save()
        self.stdout.write(_("The cluster %(name)s was added.") % {"name": cluster.slug})
