"""`manage.py export_accounts CLUSTER`: write quotas' limits into a cluster's own accounts."""

from __future__ import annotations

from console.management.commands._accounts import AccountsCommand
from console.site_yaml.accounts import Imported, give
from quotas.models import Cluster


class Command(AccountsCommand):
    """See `AccountsCommand`."""

    help = "Writes quotas' ceilings into the associations of a Slurm cluster's accounts."

    def does(self, cluster: Cluster, *, dry: bool) -> Imported:
        """Do it, or find out what would change."""
        return give(cluster, dry=dry)
