"""Resources: what each role is given, and when and how long the job runs."""

from __future__ import annotations

from typing import Any, Final

from django.utils.translation import gettext as _

from jobs.form.fields import MOST_ROLES
from jobs.form.roles import roles_of
from jobs.form.rules.advanced import SETTINGS
from jobs.spec import Framework
from jobs.web.forming import offers
from jobs.web.forming.places import nodes, places, specs
from jobs.web.forming.shown import Block, Drawing, Group, Options, Shown
from quotas.models import User

SHORT = ("roles-*-replicas", "roles-*-gpus", "roles-*-gpu-type", "roles-*-cpu", "roles-*-memory")
MORE = ("roles-*-shm", "roles-*-disk", "roles-*-rdma")
BID = ("roles-*-bid-discount", "roles-*-bid-price")
SCHEDULING = ("quota", "priority", "idle", "cpu-affinity")
OPTIONS: Final = tuple(f"option-{setting.key}" for setting in SETTINGS)
TIME = ("time-limit", "end-signal", "end-signal-before", "grace", "hold", "not-before", "retries")
AFTER = ("keep-for", "keep-when", "keep-failed")
NETWORK = ("vpc", "switch", "security-group", "cidrs", "gateway")
END = ("roles-*-min-failed", "roles-*-min-succeeded")


def model(user: User, drawing: Drawing) -> dict[str, Any]:
    """What the section's template draws."""
    offered = _Offered(drawing)
    several = len(drawing.roles) > 1
    framework = drawing.several("framework")
    return {
        "places": places(user, drawing.standing),
        "fields": framework,
        "blocks": tuple(
            _block(drawing, offered, role, name, several) for role, name in enumerate(drawing.roles)
        ),
        "add_role": len(drawing.roles) < MOST_ROLES,
        "groups": _filled(
            Group("scheduling", _("Quota, priority and idle resources"), drawing.several(*SCHEDULING)),
            Group("framework", _("Advanced framework settings"), drawing.several(*OPTIONS, "options")),
            Group("time", _("When it starts and ends"), drawing.several(*TIME), (drawing.rows("after"),)),
            Group("after", _("After the end"), drawing.several(*AFTER)),
            Group("network", _("VPC"), _network(user, drawing)),
        ),
    }


def _network(user: User, drawing: Drawing) -> tuple[Shown, ...]:
    """The VPC, and what the one that is chosen has."""
    offered = offers.networks(user, drawing, drawing.one("vpc").value)
    return tuple(drawing.one(key, suggested=offered.get(key, ())) for key in NETWORK)


class _Offered:
    """What there is to choose from where the job would run."""

    def __init__(self, drawing: Drawing) -> None:
        quota = drawing.standing.quota
        there = nodes(quota)
        self.specs: Options = specs(quota)
        self.types: Options = [(kind, "") for kind in sorted({kind for node in there for kind in node.gpus})]
        self.nodes = ", ".join(node.name for node in there)
        text = drawing.values.get("framework", "")
        framework = Framework(text) if text in set(Framework) else None
        self.roles: Options = [(name, "") for name in roles_of(framework)]


def _block(drawing: Drawing, offered: _Offered, role: int, title: str, several: bool) -> Block:
    def folded(name: str, label: str, fields: tuple[Shown, ...]) -> Group:
        return Group(f"{name}-{role}", label, fields)

    short = tuple(
        drawing.one(key, role, suggested=offered.types if key.endswith("gpu-type") else ()) for key in SHORT
    )
    more = (
        drawing.one("roles-*-name", role, suggested=offered.roles),
        drawing.one("roles-*-spec", role, suggested=offered.specs, hint=_price(drawing, offered, role)),
        *drawing.several(*MORE, role=role),
    )
    return Block(
        role,
        title if several else "",
        short,
        (drawing.rows("roles-*-ports", role),),
        _filled(
            folded("more", _("Role, specification, shared memory and disk"), more),
            folded("nodes", _("Node-specific scheduling"), _nodes(drawing, offered, role)),
            folded("bid", _("Bid for preemptible resources"), drawing.several(*BID, role=role)),
            folded("end", _("When it decides the job"), drawing.several(*END, role=role)),
        ),
        removable=several,
    )


def _nodes(drawing: Drawing, offered: _Offered, role: int) -> tuple[Shown, ...]:
    there = _("Nodes there: %(nodes)s.") % {"nodes": offered.nodes} if offered.nodes else ""
    only = drawing.one("roles-*-nodes-only", role, hint=there)
    return (only, *drawing.several("roles-*-nodes-never", "roles-*-nodes-labels", role=role))


def _price(drawing: Drawing, offered: _Offered, role: int) -> str:
    """What the size that is chosen holds and costs."""
    chosen = drawing.values.get(f"roles-{role}-spec", "")
    return str(dict(offered.specs).get(chosen, ""))


def _filled(*groups: Group) -> tuple[Group, ...]:
    """Those in which there is anything where the job would run."""
    return tuple(group for group in groups if group.fields or group.rows or group.template)
