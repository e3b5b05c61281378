"""As whom the job acts in the cloud."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _

from jobs.form.fields.base import BOTH, Field, Kind

ROLES: Final = (
    Field(
        "instance-role",
        "/instance_role",
        Kind.TEXT,
        _("Instance RAM role"),
        help=_(
            "Empty: no role. “default”: PAI's own, which reaches MaxCompute as you do and the workspace's "
            "default OSS bucket. Or the ARN of a custom role."
        ),
        source=f"{BOTH}: instance RAM role",
        placeholder="acs:ram::123456:role/training",
    ),
)
