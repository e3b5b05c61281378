"""The places of a demonstration: a cluster that nobody can reach, workspaces, their people and quotas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from quotas.models import Cluster, Membership, Node, Quota, Role, User, Workspace

WORKSPACES: Final[Mapping[str, str]] = {
    "vision": "Computer vision",
    "language": "Language models",
    "speech": "Speech",
    "ranking": "Search and ranking",
}
PEOPLE: Final[Mapping[str, Role]] = {
    "lead": Role.ADMIN,
    "operations": Role.OPERATOR,
    "researcher-1": Role.DEVELOPER,
    "researcher-2": Role.DEVELOPER,
    "intern": Role.DEVELOPER,
    "reviewer": Role.VIEWER,
}
NODES: Final = {"gpu": ("H800", 8, 8), "old": ("V100", 4, 4)}
"""By the beginning of their names: type of GPU, GPUs a node, nodes."""

CPU_OF_NODE: Final = 96_000
MEMORY_OF_NODE: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Place:
    """Where a job may be, and who may have sent it."""

    quota: Quota
    owners: tuple[User, ...]


def make_places() -> list[Place]:
    """Everything, unless it is there; nobody of them can sign in.

    The cluster takes no jobs, so that no worker asks for its inventory and nobody submits to it.
    """
    cluster, _new = Cluster.objects.get_or_create(
        slug="demo", defaults={"name": "Demonstration", "enabled": False}
    )
    for name, (kind, gpus, count) in NODES.items():
        for number in range(1, count + 1):
            Node.objects.get_or_create(
                cluster=cluster,
                name=f"{name}-{number:02}",
                defaults={
                    "cpu_milli": CPU_OF_NODE,
                    "memory_mib": MEMORY_OF_NODE,
                    "gpus": {kind: gpus},
                    "gpu_list": [{"index": index, "type": kind} for index in range(gpus)],
                },
            )
    return [place for slug, name in WORKSPACES.items() for place in _workspace(cluster, slug, name)]


def _workspace(cluster: Cluster, slug: str, name: str) -> list[Place]:
    workspace, _new = Workspace.objects.get_or_create(slug=slug, defaults={"name": name})
    owners = []
    for person, role in PEOPLE.items():
        user, new = User.objects.get_or_create(
            username=f"{slug}-{person}",
            defaults={"is_active": False},  # nobody signs in as them
        )
        if new:
            user.set_unusable_password()
            user.save()
        Membership.objects.get_or_create(workspace=workspace, user=user, defaults={"role": role})
        if role is not Role.VIEWER:
            owners.append(user)
    return [Place(_quota(workspace, cluster, kind, gpus), tuple(owners)) for kind, gpus in _SHARES.items()]


_SHARES: Final = {"research": 12, "production": 20}


def _quota(workspace: Workspace, cluster: Cluster, kind: str, gpus: int) -> Quota:
    defaults = {
        "name": kind.title(),
        "gpus": gpus,
        "cpu_milli": gpus * 12_000,
        "memory_mib": gpus * 128 * 1024,
    }
    return Quota.objects.get_or_create(workspace=workspace, cluster=cluster, slug=kind, defaults=defaults)[0]
