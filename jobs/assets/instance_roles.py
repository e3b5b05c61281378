"""Roles that jobs in a workspace may have, with credentials that the console gets for them.

Only rows of the workspace itself count: a role for everybody is carried to the vendors' targets, and no job
here gets credentials of it.
"""

from __future__ import annotations

from typing import Final

from django.db.models import Q

from jobs.models import RamRole
from quotas.models import Workspace

DEFAULT: Final = "default"
"""The value of a JobSpec's `instance_role` for the workspace's default role."""


def list_roles(workspace: Workspace) -> list[RamRole]:
    """Return the roles of which jobs in the workspace get credentials, by name."""
    return list(RamRole.objects.assumable_in(workspace))


def find_role(workspace: Workspace, name: str) -> RamRole | None:
    """Return the role that a job in the workspace gets by an ARN, an id or `default`; None for none."""
    named = Q(is_default=True) if name == DEFAULT else Q(arn=name) | Q(key=name)
    return RamRole.objects.assumable_in(workspace).filter(named).first() if name else None
