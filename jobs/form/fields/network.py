"""Which network the job is in, and how it reaches the internet."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _

from jobs.form.fields.base import BOTH, Field, Kind
from jobs.form.measures import Choice, Lines

NETWORK: Final = (
    Field(
        "vpc",
        "/network/vpc",
        Kind.TEXT,
        _("VPC"),
        help=_(
            "Without one, the job reaches the internet through a shared gateway, which may be slow. "
            "A CPFS dataset needs the VPC that its file system is in."
        ),
        source=f"{BOTH}: VPC",
    ),
    Field("switch", "/network/switch", Kind.TEXT, _("vSwitch"), source=f"{BOTH}: VPC"),
    Field("security-group", "/network/security_group", Kind.TEXT, _("Security group"), source=f"{BOTH}: VPC"),
    Field(
        "cidrs",
        "/network/cidrs",
        Kind.LONG,
        _("Extended network segments"),
        Lines(loosely=True),
        help=_("CIDR blocks, one a line."),
        source="CreateJob: UserVpc.ExtendedCIDRs",
    ),
    Field(
        "gateway",
        "/network/gateway",
        Kind.CHOICE,
        _("Internet access gateway"),
        Choice({"": "", "eth0": "eth0", "eth1": "eth1"}),
        help=_(
            "The public gateway is shared and slow when many use it; a dedicated one has its own bandwidth."
        ),
        source=f"{BOTH}: internet access gateway",
        options=(
            ("", _("As the target has it")),
            ("eth0", _("Public gateway")),
            ("eth1", _("Dedicated gateway")),
        ),
    ),
)
