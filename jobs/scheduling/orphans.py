"""Orphaned jobs: those of this console that a cluster runs and the database does not know.

They were submitted after the backup was made from which the database was restored.  An admin adopts or ends
each; until then their resources count as used by others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils.translation import gettext as _
from pydantic import ValidationError

from jobs import dialects
from jobs.backends.base import Backend, Handle, Unreachable
from jobs.backends.origins import LiveAttempts, Origin, OriginReader
from jobs.clusters import NoSuchBackend, backend_for
from jobs.form.dialect_support import DEFAULT_DIALECT
from jobs.lifecycle import transitions
from jobs.live import triggers
from jobs.logs import redaction
from jobs.models import AssetCheck, Attempt, Event, ExternalJob, Job, JobFile, Visibility
from jobs.scheduling import observations
from jobs.spec import JobSpec
from jobs.states import Phase, Reason, ReasonCode, State
from jobs.submission import level_of, parts_of, tags, terms_of
from quotas import encryption, ledger
from quotas.amounts import total
from quotas.audit import action_record
from quotas.audit.action_record import Actor
from quotas.clusters import gputypes
from quotas.models import AdminAction, Cluster, Node, Quota, User

log = structlog.get_logger(__name__)

GRACE_S: Final = 30
"""Time that an orphan has to end by itself."""

_AT_ONCE: Final = 500


class NotAdoptable(Exception):
    """The orphan can't become a job; the message says why, in the reader's language."""


@dataclass(frozen=True, slots=True)
class Orphan:
    """An attempt that runs on a cluster; `origin` is what it was submitted as, None where that is unknown."""

    cluster: Cluster
    key: str
    origin: Origin | None

    @property
    def public_id(self) -> str:
        """Return the id that its job had."""
        return self.key.split("-")[1]

    @property
    def number(self) -> int:
        """Return the number of the attempt."""
        return int(self.key.split("-")[2])

    def __str__(self) -> str:
        if self.origin is None:
            return self.key
        return f"{self.origin.name} ({self.public_id}), {self.origin.person.name}, {self.origin.workspace}"


def find() -> list[Orphan]:
    """Return the orphans of all clusters that answer."""
    found: list[Orphan] = []
    for cluster in Cluster.objects.order_by("slug"):
        try:
            backend = backend_for(cluster)
            keys = _unknown(_list_keys(cluster, backend))
            found += [Orphan(cluster, key, _read_origin(backend, key)) for key in keys]
        except (NoSuchBackend, OSError, Unreachable) as error:
            log.warning("orphans_not_listed", cluster=cluster.slug, error=str(error))
    return found


def get(key: str) -> Orphan | None:
    """Return the orphan with that key; None where there is none."""
    return next((each for each in find() if each.key == key), None)


def _list_keys(cluster: Cluster, backend: Backend) -> Iterator[str]:
    """Yield the keys of this console's attempts that the cluster runs."""
    prefix = settings.CONSOLE_INSTALLATION
    if isinstance(backend, LiveAttempts):
        listed: Collection[str] = backend.list_live()
    else:  # as the last inventory listed them
        rows = ExternalJob.objects.filter(cluster=cluster, name__startswith=f"{prefix}-")
        listed = rows.values_list("name", flat=True)
    pattern = re.compile(rf"{re.escape(prefix)}-[a-z0-9]+-[1-9][0-9]{{0,5}}")
    return (key for key in listed if pattern.fullmatch(key))


def _unknown(keys: Iterator[str]) -> list[str]:
    """Return those that are no attempt's, and no check's of an asset."""
    wanted = sorted(set(keys))
    checks = AssetCheck.objects.filter(public_id__in=[key.split("-")[1] for key in wanted[:_AT_ONCE]])
    known = {transitions.key_of(public_id, 1) for public_id in checks.values_list("public_id", flat=True)}
    for first in range(0, len(wanted), _AT_ONCE):
        rows = Attempt.objects.filter(key__in=wanted[first : first + _AT_ONCE])
        known.update(rows.values_list("key", flat=True))
    return [key for key in wanted if key not in known]


def _read_origin(backend: Backend, key: str) -> Origin | None:
    return backend.read_origin(key) if isinstance(backend, OriginReader) else None


def end(actor: Actor, orphan: Orphan) -> None:
    """Ask the cluster to end it.  Raises Unreachable, and PermissionDenied for whoever is no admin."""
    _record(actor, orphan, "end_orphan")
    backend = backend_for(orphan.cluster)
    for handle in backend.find([orphan.key])[orphan.key]:
        backend.stop(handle, grace_s=GRACE_S, signal="TERM")


def _record(actor: Actor, orphan: Orphan, act: str) -> None:
    kind = AdminAction.Kind.JOBS
    action_record.write_down(actor, kind, str(orphan), act=act, jobs=[orphan.public_id])


def adopt(actor: Actor, orphan: Orphan) -> Job:
    """Make it a job of its owner again, with its id, its log and what it holds.

    Raises NotAdoptable, Unreachable, and PermissionDenied for whoever is no admin.
    """
    origin = orphan.origin
    if origin is None:
        raise NotAdoptable(_("There is no record of what it was submitted as. It can only be ended."))
    handles = backend_for(orphan.cluster).find([orphan.key])[orphan.key]
    if not handles:
        raise NotAdoptable(_("It has ended meanwhile."))
    owner = User.objects.filter(pk=origin.person.number, username=origin.person.name).first()
    if owner is None:
        raise NotAdoptable(
            _("Its owner, %(name)s, has no account with the number %(number)d.")
            % {"name": origin.person.name, "number": origin.person.number}
        )
    quota = Quota.objects.filter(
        cluster=orphan.cluster, workspace__slug=origin.workspace, slug=origin.quota
    ).first()
    if quota is None:
        raise NotAdoptable(
            _("There is no quota %(quota)s of the workspace %(workspace)s on this cluster: create it first.")
            % {"quota": origin.quota, "workspace": origin.workspace}
        )
    if Job.objects.filter(public_id=orphan.public_id).exists():
        raise NotAdoptable(_("Its job is known, and has other attempts: the attempt can only be ended."))
    try:
        spec = JobSpec.model_validate_json(json.dumps(origin.spec)).model_copy(update={"after": ()})
    except ValidationError:
        raise NotAdoptable(_("Another release submitted it. It can only be ended.")) from None
    with ledger.lock_cluster(orphan.cluster.pk):
        _record(actor, orphan, "adopt")
        return _store(orphan, origin, spec, owner, quota, handles[0], actor.user)


def _store(
    orphan: Orphan, origin: Origin, spec: JobSpec, owner: User, quota: Quota, handle: Handle, actor: User
) -> Job:
    """Store the job as if it had been submitted, admitted and accepted; under `ledger.lock_cluster` only."""
    parts = parts_of(spec, gputypes.names())
    job = Job.objects.create(
        public_id=orphan.public_id,
        attempt_number=orphan.number,
        name=spec.name,
        owner=owner,
        workspace=quota.workspace,
        cluster=orphan.cluster,
        quota=quota,
        visibility=Visibility[spec.visibility.name],
        dialect=DEFAULT_DIALECT,
        description=spec.description,
        tolerates_faults=spec.fault_tolerance.enabled,
        priority=level_of(spec, quota),
        replicas_total=spec.replicas,
        gpus=sum(role.replicas * role.resources.gpus for role in spec.roles),
        gpu_type=next((kind for part in parts for kind in part.each.gpus if kind), ""),
    )
    text = dialects.get(DEFAULT_DIALECT).render(spec, {}).text
    JobFile.objects.create(job=job, text=text, spec_json=spec.model_dump_json())
    tags.store_tags(job, spec.tags)
    attempt = transitions.new_attempt(job, orphan.number)
    if origin.endpoint_token:
        attempt.endpoint_token = encryption.encrypt(origin.endpoint_token)
    attempt.handle, attempt.live = str(handle), True
    attempt.save(update_fields=["endpoint_token", "handle", "live"])
    Attempt.objects.filter(pk=attempt.pk).update(submitted_at=Now())
    redaction.store_secrets([(attempt, origin.secrets)])
    request = ledger.ask(
        attempt.key,
        quota=quota,
        owner=owner,
        parts=parts,
        priority=job.priority,
        declared_s=spec.time_limit_s,
        terms=terms_of(spec),
    )
    amounts = total(part.each.times(part.count) for part in parts)
    on_one = len(origin.nodes) == 1 and Node.objects.filter(cluster=quota.cluster, name=origin.nodes[0])
    ledger.reserve(request, [(origin.nodes[0], amounts)] if on_one else [])
    observations.lay_out([attempt])
    transitions.apply(job, State.SUBMITTING, Reason(ReasonCode.SENDING), phase=Phase.CREATING)
    transitions.apply(
        job,
        State.PENDING,
        Reason(ReasonCode.STARTING),
        phase=Phase.ENV_PREPARING,
        event=Event.Kind.FOUND_AGAIN,
        actor=actor,
    )
    transaction.on_commit(lambda: log.info("orphan_adopted", attempt=orphan.key))
    triggers.trigger_on_commit("drain", orphan.cluster.pk)
    return job
