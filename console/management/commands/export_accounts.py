"""`manage.py export_accounts CLUSTER`: write quotas' ceilings into a cluster's own accounts."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _

from console.management.commands.apply import DIFFERS, tell
from console.siteyaml.accounts import NoAccounts, NotChosen, give
from jobs.backends.base import Unreachable
from quotas.models import Cluster


class Command(BaseCommand):
    """Repeating it changes nothing."""

    help = "Writes quotas' ceilings into the associations of a Slurm cluster's accounts."

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
            given = give(cluster, dry=options["diff"])
        except NoAccounts as none:
            raise CommandError(_("This cluster keeps no accounts.")) from none
        except NotChosen as none:
            text = _("The cluster's settings do not allow it: write_back has to be true there.")
            raise CommandError(text) from none
        except Unreachable as error:
            raise CommandError(str(error)) from error
        same = _("Everything is as the accounts are.")
        tell(self.stdout, given.applied, dry=options["diff"], same=same)
        for each in given.left:
            self.stdout.write(f"? {each}")
        if options["diff"] and given.applied.changes:
            sys.exit(DIFFERS)
