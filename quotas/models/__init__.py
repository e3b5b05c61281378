"""The rows of this application, one idea a module."""

from quotas.models.access_keys import AccessKey, UsedSignature
from quotas.models.announcements import AdminAction, Banner, Maintenance, ReadOnly
from quotas.models.audit import Action, AuditEntry, Way
from quotas.models.clusters import Admission, Cluster, GpuType, Node, NodeState
from quotas.models.groups import GroupMapping, LocalGroup, LocalGroupRole, PersonGroup
from quotas.models.invitations import Invitation, ServiceAccount
from quotas.models.limits import Kind, Period, Quota, Source
from quotas.models.policies import JobPolicy
from quotas.models.prices import PriceSpan, Spec, SpotPrice
from quotas.models.queue_snapshot import QueueSnapshot, UsageDay, UsageHour, UsageMark
from quotas.models.requests import Request, Reservation
from quotas.models.signins import Grant, SignIn
from quotas.models.tokens import AccessToken
from quotas.models.users import User
from quotas.models.workspaces import Membership, Role, Workspace

__all__ = [
    "AccessKey",
    "AccessToken",
    "Action",
    "AdminAction",
    "Admission",
    "AuditEntry",
    "Banner",
    "Cluster",
    "GpuType",
    "Grant",
    "GroupMapping",
    "Invitation",
    "JobPolicy",
    "Kind",
    "LocalGroup",
    "LocalGroupRole",
    "Maintenance",
    "Membership",
    "Node",
    "NodeState",
    "Period",
    "PersonGroup",
    "PriceSpan",
    "QueueSnapshot",
    "Quota",
    "ReadOnly",
    "Request",
    "Reservation",
    "Role",
    "ServiceAccount",
    "SignIn",
    "Source",
    "Spec",
    "SpotPrice",
    "UsageDay",
    "UsageHour",
    "UsageMark",
    "UsedSignature",
    "User",
    "Way",
    "Workspace",
]
