"""What a backend is handed of a job: for a worker that sends it, and for whoever looks at it beforehand.

Looking asks nobody: `render` is a function of the job and the cluster's settings.  No value of a secret is
read for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from jobs.assets.uploads import supply
from jobs.backends.base import Person, Refused, Rendering, RoleSent, Sent, Submission, Unreachable
from jobs.engines import NoSuchBackend, backend_for
from jobs.lifecycle.transitions import key_of
from jobs.messages import reason_message
from jobs.spec import JobSpec
from jobs.states import Reason
from quotas.clusters import gputypes, inventory
from quotas.models import Quota, User

__all__ = ["NotRendered", "RoleSent", "Sent", "rendered", "submission"]

NEW: Final = "new"
"""The id of a job that has none yet."""

SBATCH: Final = "sbatch"
NONE: Final[Mapping[str, str]] = MappingProxyType({})


class NotRendered(Exception):
    """There is nothing to look at; `str` says why, `refused` that the backend would never take the job."""

    def __init__(self, text: str = "", *, refused: bool = False) -> None:
        super().__init__(text)
        self.refused = refused


def submission(
    owner: User,
    quota: Quota,
    spec: JobSpec,
    key: str,
    job_id: str,
    attempt: int,
    options: Mapping[str, str] = NONE,
) -> Submission:
    """What is handed over of an attempt; its secrets are not in it yet."""
    return Submission(
        key=key,
        job_id=job_id,
        attempt=attempt,
        spec=_as_the_engine_says(spec, quota.cluster_id),
        person=Person(owner.get_username(), owner.pk, owner.unix_name),
        virtual_cluster=quota.slug,
        workspace=quota.workspace.slug,
        options=options,
    )


def options_of(dialect: str, extras: Mapping[str, object]) -> dict[str, str]:
    """What an sbatch script says that a JobSpec has no word for."""
    if dialect != SBATCH:
        return {}
    return {at: said for at, said in extras.items() if at.startswith("/") and isinstance(said, str)}


def rendered(owner: User, quota: Quota, spec: JobSpec, options: Mapping[str, str] = NONE) -> Sent:
    """What would be sent of a job that is not submitted yet.  Raises NotRendered."""
    try:
        backend = backend_for(quota.cluster)
    except NoSuchBackend:
        raise NotRendered from None
    except Unreachable as error:
        raise NotRendered(str(error)) from error
    if not isinstance(backend, Rendering):
        raise NotRendered
    sent = submission(owner, quota, spec, key_of(NEW, 1), NEW, 1, options)
    try:
        return backend.render(replace(sent, uploads=supply.promised(owner, spec)))
    except Refused as refused:
        raise NotRendered(_sentence(refused.reason), refused=True) from refused


def _sentence(reason: Reason) -> str:
    return reason_message(reason.code, reason.params)


def _as_the_engine_says(spec: JobSpec, cluster_id: int) -> JobSpec:
    """The job with its GPU types under the names that its engine has for them."""
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
