"""Previews of a submission: what its pods are given, and a dry run by the API server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from jobs.backends import base, previews
from jobs.backends.base import (
    MASK,
    DryRunCheck,
    Inventory,
    NotSubmitted,
    Refused,
    RenderedRole,
    Submission,
)
from jobs.backends.kubernetes import nodes
from jobs.backends.kubernetes.client.api import Api
from jobs.backends.kubernetes.config import KubernetesConfig
from jobs.backends.kubernetes.discovery import Operators
from jobs.backends.kubernetes.handles import AttemptRef
from jobs.backends.kubernetes.objects import attempt as attempt_objects
from jobs.backends.kubernetes.objects import checks
from jobs.backends.kubernetes.objects.environment import Peers, replica_variables, shared_variables
from jobs.backends.kubernetes.objects.kubeflow import choose_kind
from jobs.backends.kubernetes.objects.pods import secret_values
from jobs.backends.kubernetes.objects.volumes import Volume, list_volumes
from jobs.backends.kubernetes.submitter import Submitter
from jobs.spec import RoleSpec

_PER_REPLICA: Final = ("RANK", "PAI_TASK_INDEX", "PAI_CONTAINER_ID", "PET_NODE_RANK", "TF_CONFIG")
"""Some of the variables that differ between the replicas of a role."""


def mask_secrets(submission: Submission) -> Submission:
    """Return the submission with a mask for every secret that it names."""
    return previews.mask_secrets(submission, checks.list_secrets(submission))


def render(submission: Submission, config: KubernetesConfig, operators: Operators) -> base.RenderedJob:
    """Return what each role's pods are given, and their first pod or what makes it, as that is created.

    Raises Refused.
    """
    submission = mask_secrets(submission)
    spec = submission.spec
    kind, queue = choose_kind(spec, config, operators)
    objects = attempt_objects.render(submission, config, kind, queue)
    peers = Peers.of(submission, config, kind)
    created = [objects.owned[-1]] * len(spec.roles) if kind else objects.pods
    roles = [_role(submission, config, peers, position, each) for position, each in enumerate(created)]
    return base.RenderedJob(tuple(roles), spec.time_limit_s, spec.grace_s)


def _role(
    submission: Submission, config: KubernetesConfig, peers: Peers, position: int, created: dict[str, Any]
) -> RenderedRole:
    spec, role = submission.spec, submission.spec.roles[position]
    shared = shared_variables(submission, peers, config)
    own = replica_variables(spec, peers, position, 0, submission.job_id)
    several: dict[str, str | None] = dict.fromkeys(_PER_REPLICA) if role.replicas > 1 else {}
    secret = dict.fromkeys(secret_values(submission), MASK)
    seen = previews.render_role(
        role,
        role.resources,
        shm_mib=role.resources.shm_mib,
        env={**shared, **own, **{name: None for name in several if name in own}, **secret},
        mounts=_mounts(submission, role, config),
        script=json.dumps(created, indent=2, ensure_ascii=False),
        contained=True,
    )
    ports = tuple((port.label, peers.ports[position][port.label][0], port.count) for port in role.ports)
    return replace(seen, image=role.image or config.image, ports=ports)


def _mounts(
    submission: Submission, role: RoleSpec, config: KubernetesConfig
) -> Iterator[tuple[str, str, bool]]:
    for volume in list_volumes(submission, role, config)[1:]:
        yield volume.path, _describe(volume), volume.read_only


def _describe(volume: Volume) -> str:
    """Return a volume's source on one line."""
    if volume.order:
        return str(volume.order["name"])
    kind, source = next(iter(volume.source.items()))
    words = {
        "hostPath": source.get("path", ""),
        "persistentVolumeClaim": f"pvc://{source.get('claimName', '')}",
        "nfs": f"nfs://{source.get('server', '')}{source.get('path', '')}",
    }
    place = words.get(kind, kind)
    return f"{place}/{volume.folder}" if volume.folder else place


def dry_run(
    api: Api,
    submission: Submission,
    config: KubernetesConfig,
    operators: Operators,
    inventory: Callable[[], Inventory],
) -> Iterator[DryRunCheck]:
    """Yield whether the API server takes a pod of each role, and whether there is room now."""
    attempt = AttemptRef(config.namespace_of(submission.workspace), submission.key)
    try:
        objects = attempt_objects.render(submission, config, *choose_kind(submission.spec, config, operators))
        Submitter(api, config).try_pods(attempt, objects)
    except (Refused, NotSubmitted) as refused:
        pointer = str(refused.reason.params.get("pointer", ""))
        yield DryRunCheck("accepted", False, reason=refused.reason, pointer=pointer)
        return
    yield DryRunCheck("accepted", True)
    if (uid := config.uid_of(submission.person.number)) is not None:
        yield DryRunCheck("user", True, detail=str(uid))
    found = inventory()
    try:
        nodes.check_room(submission.spec, found)
    except NotSubmitted as full:
        yield DryRunCheck("room", None, reason=full.reason)
    else:
        free = [node.name for node in found.nodes if node.schedulable]
        yield DryRunCheck("room", True, detail=", ".join(free))
