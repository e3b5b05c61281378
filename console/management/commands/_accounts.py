"""Shared parts of the account commands: the cluster, `--diff`, and their output."""

from __future__ import annotations

import sys
from abc import abstractmethod
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _

from console.management.commands.apply import DIFFERS, tell
from console.site_yaml.accounts import Imported, NoAccounts, NotChosen
from console.site_yaml.parser import Wrong
from jobs.backends.base import Unreachable
from quotas.models import Cluster


class AccountsCommand(BaseCommand):
    """A command about a cluster's accounts; repeating it changes nothing."""

    @abstractmethod
    def run(self, cluster: Cluster, *, dry: bool) -> Imported:
        """Apply the changes, or with `dry` only find them out."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster", help="The cluster's short name.")
        parser.add_argument(
            "--diff", action="store_true", help="Only say what would change; exits 2 when something would."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        cluster = Cluster.objects.filter(slug=options["cluster"]).first()
        if cluster is None:
            raise CommandError(_("Cluster not found."))
        try:
            found = self.run(cluster, dry=options["diff"])
        except (NoAccounts, NotChosen, Unreachable, Wrong) as error:
            raise CommandError(str(error)) from error
        same = _("No changes: everything matches the accounts.")
        tell(self.stdout, found.applied, dry=options["diff"], same=same)
        for each in found.left:
            self.stdout.write(f"? {each}")
        if options["diff"] and found.applied.changes:
            sys.exit(DIFFERS)
