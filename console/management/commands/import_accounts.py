"""`manage.py import_accounts CLUSTER`: make quotas as the accounts of a cluster's own scheduler are."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _

from console.management.commands.apply import DIFFERS, tell
from console.siteyaml.accounts import NoAccounts, take
from console.siteyaml.reading import Wrong
from jobs.backends.base import Unreachable
from quotas.models import Cluster


class Command(BaseCommand):
    """Repeating it changes nothing."""

    help = "Makes workspaces, members and quotas as a Slurm cluster's associations and QOS are."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster", help="The cluster's short name.")
        parser.add_argument(
            "--diff", action="store_true", help="Only say what would change; exits 2 when something would."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        cluster = Cluster.objects.filter(slug=options["cluster"]).first()
        if cluster is None:
            raise CommandError(_("There is no cluster of this name."))
        try:
            imported = take(cluster, dry=options["diff"])
        except NoAccounts as none:
            raise CommandError(_("This cluster keeps no accounts.")) from none
        except (Unreachable, Wrong) as error:
            raise CommandError(str(error)) from error
        same = _("Everything is as the accounts are.")
        tell(self.stdout, imported.applied, dry=options["diff"], same=same)
        for each in imported.left:
            self.stdout.write(f"? {each}")
        if options["diff"] and imported.applied.changes:
            sys.exit(DIFFERS)
