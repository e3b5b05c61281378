"""`manage.py add_cluster NAME`: add a cluster, as Admin, Clusters, Add does."""

from __future__ import annotations

import sys
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.forms import model_to_dict
from django.utils.translation import gettext as _

from jobs.admin.clusters import ClusterForm
from jobs.backends import registry
from quotas.audit import origin
from quotas.audit.origin import Origin
from quotas.models import Admission, Cluster, Way

STANDARD_INPUT: Final = "-"


class Command(BaseCommand):
    """Add a cluster; one that is there already is left as it is, and that is a failure."""

    help = "Adds a cluster. Quotas decide who may use it: manage.py apply."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster", metavar="NAME", help="The cluster's short name.")
        parser.add_argument(
            "--title", default="", help="What it is called on pages; the short name otherwise."
        )
        parser.add_argument("--backend", choices=registry.names(), default="slurm")
        parser.add_argument("--region", default="", help="Where it stands, as people name it.")
        parser.add_argument(
            "--admission",
            choices=Admission.values,
            help="Who decides what starts when: the engine where it schedules, unless this says otherwise.",
        )
        parser.add_argument(
            "--config",
            default="{}",
            metavar="JSON",
            help="Its settings; - is standard input, for those that hold secrets.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Add the cluster."""
        has_scheduler = registry.find(options["backend"]).has_scheduler
        usual = Admission.ENGINE if has_scheduler else Admission.CONSOLE
        config = sys.stdin.read() if options["config"] == STANDARD_INPUT else options["config"]
        form = ClusterForm(
            {
                **model_to_dict(Cluster(), ClusterForm.Meta.fields),
                "slug": options["cluster"],
                "name": options["title"] or options["cluster"],
                "region": options["region"],
                "backend": options["backend"],
                "config": config,
                "admission": options["admission"] or usual,
                "enabled": True,
                "save_untested": True,  # `try_cluster` is the next command
            }
        )
        if not form.is_valid():
            problems = form.errors.get_json_data().items()
            raise CommandError(
                "\n".join(f"{name}: {each['message']}" for name, found in problems for each in found)
            )
        cluster = form.save(commit=False)
        with origin.of(Origin(Way.COMMAND, name=f"add_cluster {cluster.slug}")):
            cluster.save()
        self.stdout.write(_("The cluster %(name)s was added.") % {"name": cluster.slug})
