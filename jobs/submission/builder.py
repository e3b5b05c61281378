"""Submission builder: a job as a backend receives it, for the worker that sends it and for its preview.

The preview asks no cluster: `render` is a function of the job and the cluster's settings.  It reads no value
of a secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from jobs.assets import instance_roles, site_storage
from jobs.assets.uploads import supply
from jobs.backends.base import Person, Refused, RenderedJob, Rendering, Submission, Unreachable
from jobs.clusters import NoSuchBackend, backend_for
from jobs.lifecycle.transitions import key_of
from jobs.messages import reason_message
from jobs.models import RamRole
from jobs.spec import JobSpec
from quotas.clusters import gputypes, inventory
from quotas.models import Quota, User

NEW: Final = "new"
"""The id of a job that has none yet."""

SBATCH: Final = "sbatch"
NONE: Final[Mapping[str, str]] = MappingProxyType({})


class NotRendered(Exception):
    """There is nothing to show; `str` says why, `refused` that the backend would never take the job."""

    def __init__(self, text: str = "", *, refused: bool = False) -> None:
        super().__init__(text)
        self.refused = refused


def build_submission(
    owner: User,
    quota: Quota,
    spec: JobSpec,
    key: str,
    job_id: str,
    attempt: int,
    options: Mapping[str, str] = NONE,
    role: RamRole | None = None,
) -> Submission:
    """Build the submission of an attempt, without its secrets and the storage that it mounts.

    `role` is the one that it is given.
    """
    return Submission(
        key=key,
        job_id=job_id,
        attempt=attempt,
        spec=_with_raw_gpu_types(spec, quota.cluster_id),
        person=Person(owner.get_username(), owner.pk, owner.unix_name),
        virtual_cluster=quota.slug,
        workspace=quota.workspace.slug,
        egress=tuple(quota.workspace.egress),
        options=options,
        role_provider=role.provider if role else "",
    )


def build_new(owner: User, quota: Quota, spec: JobSpec, options: Mapping[str, str] = NONE) -> Submission:
    """Build the submission of a job that is not submitted yet."""
    role = instance_roles.find_role(quota.workspace, spec.instance_role)
    return replace(
        build_submission(owner, quota, spec, key_of(NEW, 1), NEW, 1, options, role),
        storage=site_storage.find_mappings(quota.cluster_id, quota.workspace_id)
        if spec.mounts or spec.code
        else {},
    )


def options_of(dialect: str, extras: Mapping[str, object]) -> dict[str, str]:
    """Return the options of an sbatch script that a JobSpec has no field for."""
    if dialect != SBATCH:
        return {}
    return {at: said for at, said in extras.items() if at.startswith("/") and isinstance(said, str)}


def render(owner: User, quota: Quota, spec: JobSpec, options: Mapping[str, str] = NONE) -> RenderedJob:
    """Return the submission of a job that is not submitted yet as text.  Raises NotRendered."""
    try:
        backend = backend_for(quota.cluster)
    except NoSuchBackend:
        raise NotRendered from None
    except Unreachable as error:
        raise NotRendered(str(error)) from error
    if not isinstance(backend, Rendering):
        raise NotRendered
    sent = build_new(owner, quota, spec, options)
    try:
        return backend.render(replace(sent, uploads=supply.describe_trees(owner, spec)))
    except Refused as refused:
        text = reason_message(refused.reason.code, refused.reason.params)
        raise NotRendered(text, refused=True) from refused


def _with_raw_gpu_types(spec: JobSpec, cluster_id: int) -> JobSpec:
    """Return the job with its GPU types under their backend's own names."""
    if not any(role.resources.gpu_type for role in spec.roles):
        return spec
    known, raw = gputypes.names(), inventory.raw_types(cluster_id)
    roles = []
    for role in spec.roles:
        wanted = role.resources.gpu_type
        meant = raw.get(gputypes.canonical(wanted, known), wanted)
        resources = role.resources.model_copy(update={"gpu_type": meant})
        roles.append(role if meant == wanted else role.model_copy(update={"resources": resources}))
    return spec.model_copy(update={"roles": tuple(roles)})
