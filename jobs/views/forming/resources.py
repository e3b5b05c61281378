"""Resources: what each role is given, and when and how long the job runs."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from jobs.forming.fields import MOST_ROLES
from jobs.views.forming.shown import Block, Drawing, Group
from quotas.models import User

SHORT = ("roles-*-replicas", "roles-*-gpus", "roles-*-gpu-type", "roles-*-cpu", "roles-*-memory")
MORE = ("roles-*-name", "roles-*-spec", "roles-*-shm", "roles-*-disk", "roles-*-rdma")
NODES = ("roles-*-nodes-only", "roles-*-nodes-never", "roles-*-nodes-labels")
BID = ("roles-*-bid-discount", "roles-*-bid-price")
SCHEDULING = ("quota", "priority", "idle", "cpu-affinity")
TIME = ("time-limit", "end-signal", "end-signal-before", "grace", "hold", "not-before", "retries")
AFTER = ("keep-for", "keep-when", "keep-failed")
NETWORK = ("vpc", "switch", "security-group", "cidrs", "gateway")
END = ("roles-*-min-failed", "roles-*-min-succeeded")


def model(_user: User, drawing: Drawing) -> dict[str, Any]:
    """What the section's template draws."""
    several = len(drawing.roles) > 1
    return {
        "blocks": tuple(_block(drawing, role, name, several) for role, name in enumerate(drawing.roles)),
        "add_role": len(drawing.roles) < MOST_ROLES,
        "groups": (
            Group("scheduling", _("Quota, priority and idle resources"), drawing.several(*SCHEDULING)),
            Group("framework", _("Framework and its settings"), drawing.several("framework", "options")),
            Group("time", _("When it starts and ends"), drawing.several(*TIME)),
            Group("after", _("After the end"), drawing.several(*AFTER)),
            Group("network", _("VPC"), drawing.several(*NETWORK)),
        ),
    }


def _block(drawing: Drawing, role: int, title: str, several: bool) -> Block:
    def folded(name: str, label: str, keys: tuple[str, ...]) -> Group:
        return Group(f"{name}-{role}", label, drawing.several(*keys, role=role))

    return Block(
        role,
        title if several else "",
        drawing.several(*SHORT, role=role),
        (drawing.rows("roles-*-ports", role),),
        (
            folded("more", _("Role, specification, shared memory and disk"), MORE),
            folded("nodes", _("Choice of nodes"), NODES),
            folded("bid", _("Bid for preemptible resources"), BID),
            folded("end", _("When it decides the job"), END),
        ),
        removable=several,
    )
