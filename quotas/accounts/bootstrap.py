"""Defaults of a fresh console: one workspace, the local cluster, and a quota without limits.

The local cluster runs a job that names an image as plain processes while this machine has no container
engine, and marks it so; an admin may take that back in the cluster's settings.
"""

from __future__ import annotations

from typing import Final

from django.db import transaction

from quotas import default_names
from quotas.models import Cluster, Membership, Quota, Role, User, Workspace

FIRST_CLUSTER: Final = {
    "allow_plain": True,
    "code_from": ["https://*", "ssh://*"],
    "data_from": ["https://*", "s3://*", "oss://*", "bos://*"],
    "uid_base": 2_100_000_000,
}
"""The settings of the first cluster: hosts of the internet at large may be fetched from, none inside.

Its user ids are none that subordinate ids (from 100,000) or SSSD (200,000 to 2,000,200,000) take.
"""


@transaction.atomic
def ensure_defaults(admin: User, *, has_several_hosts: bool = False) -> bool:
    """Make the default workspace, cluster and quota where there are none; return whether it made them.

    A console of several hosts has no local cluster, and so no quota yet.
    """
    if Workspace.objects.exists():
        return False
    workspace = Workspace.objects.create(slug="default", name=default_names.WORKSPACE)
    Membership.objects.create(workspace=workspace, user=admin, role=Role.ADMIN)
    if has_several_hosts:
        return True
    cluster = Cluster.objects.create(
        slug="local", name=default_names.CLUSTER, backend="local", config=dict(FIRST_CLUSTER)
    )
    Quota.objects.create(workspace=workspace, cluster=cluster, slug="default", name=default_names.QUOTA)
    return True
