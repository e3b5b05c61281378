"""The models of this application that the audit log follows.

Not those that only machines write: requests, reservations, what was held.  Nodes are seen anew every few
seconds; an admin's decisions about them are logged by `quotas.clusters.inventory.decide`.
"""

from __future__ import annotations

from quotas import audit
from quotas.models import (
    AccessKey,
    AccessToken,
    Banner,
    Cluster,
    GpuType,
    GroupMapping,
    Invitation,
    JobPolicy,
    LocalGroup,
    LocalGroupRole,
    Maintenance,
    Membership,
    Quota,
    ServiceAccount,
    Spec,
    SpotPrice,
    User,
    Workspace,
)


def begin() -> None:
    """Once, when the application is ready."""
    audit.follow(Workspace)
    audit.follow(GroupMapping)
    audit.follow(LocalGroup, links=("people",))
    audit.follow(LocalGroupRole)
    audit.follow(Invitation, without=("digest",))
    audit.follow(ServiceAccount)
    audit.follow(Membership)
    audit.follow(Banner)
    audit.follow(Maintenance)
    audit.follow(User, without=("last_login",), masked=("password",), links=("groups", "user_permissions"))
    audit.follow(Cluster, without=("answered_at", "trouble", "look_ms", "next_look_at"))
    audit.follow(GpuType)
    audit.follow(Quota)
    audit.follow(JobPolicy)
    audit.follow(Spec)
    audit.follow(SpotPrice)
    audit.follow(AccessKey, without=("ciphertext", "last_used_at"))
    audit.follow(AccessToken, without=("digest", "last_used_at"))
