"""The rows of this application, one idea a module."""

from quotas.models.clusters import Admission, Cluster, Node
from quotas.models.limits import Quota
from quotas.models.requests import Request, Reservation
from quotas.models.tokens import AccessToken
from quotas.models.users import User
from quotas.models.workspaces import Membership, Role, Workspace

__all__ = [
    "AccessToken",
    "Admission",
    "Cluster",
    "Membership",
    "Node",
    "Quota",
    "Request",
    "Reservation",
    "Role",
    "User",
    "Workspace",
]
