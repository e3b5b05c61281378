"""`manage.py import_accounts CLUSTER`: make quotas as the accounts of a cluster's own scheduler are."""

from __future__ import annotations

from console.management.commands._accounts import AccountsCommand
from console.site_yaml.accounts import Imported, import_quotas
from quotas.models import Cluster


class Command(AccountsCommand):
    """See `AccountsCommand`."""

    help = "Makes workspaces, members and quotas as a Slurm cluster's associations and QOS are."

    def run(self, cluster: Cluster, *, dry: bool) -> Imported:
        """Apply the changes, or with `dry` only find them out."""
        return import_quotas(cluster, dry=dry)
