"""`manage.py export_accounts CLUSTER`: write quotas' limits into a cluster's own accounts."""

from __future__ import annotations

from console.management.commands._accounts import AccountsCommand
from console.site_yaml.accounts import Imported, export_limits
from quotas.models import Cluster


class Command(AccountsCommand):
    """See `AccountsCommand`."""

    help = "Writes quotas' limits into the associations of a Slurm cluster's accounts."

    def run(self, cluster: Cluster, *, dry: bool) -> Imported:
        """Apply the changes, or with `dry` only find them out."""
        return export_limits(cluster, dry=dry)
