"""Credentials of roles for jobs that can't ask the console: put beside them, and renewed before they end.

A job that has a network of its own asks at its service address instead (`jobs.access.job_service`).
"""

from __future__ import annotations

import json

import structlog
from django.db.models import QuerySet

from jobs.access.instance_roles import answers, credentials
from jobs.backends.base import CredentialFiles, Handle, Unreachable
from jobs.clusters import NoSuchBackend, backend_for
from jobs.live import triggers
from jobs.models import AssetKind, Attempt
from quotas.models import Cluster

log = structlog.get_logger(__name__)


def trigger_due() -> None:
    """Trigger a renewal for every cluster with live jobs that have a role."""
    for cluster_id in set(_live().values_list("job__cluster_id", flat=True)):
        triggers.trigger("renew_credentials", cluster_id)


def renew(cluster_id: int) -> None:
    """Put credentials beside the cluster's live jobs that have a role and none, old or outdated ones."""
    attempts = list(_live().filter(job__cluster_id=cluster_id).select_related("job__workspace"))
    if not attempts:
        return
    try:
        backend = backend_for(Cluster.objects.get(pk=cluster_id))
    except (NoSuchBackend, Unreachable) as error:
        log.warning("credentials_not_renewed", cluster=cluster_id, problem=str(error))
        return
    if not isinstance(backend, CredentialFiles):
        return
    for attempt in attempts:
        try:
            _renew(backend, attempt)
        except OSError as error:
            log.warning("credentials_not_renewed", attempt=attempt.key, problem=str(error))


def _live() -> QuerySet[Attempt]:
    has_role = Attempt.objects.filter(live=True, ended_at=None, job__asset_uses__kind=AssetKind.ROLE)
    return has_role.exclude(handle="").order_by("pk").distinct()


def _renew(backend: CredentialFiles, attempt: Attempt) -> None:
    handle, role = Handle(attempt.handle), credentials.role_of(attempt.job)
    age_s = backend.credentials_age_s(handle)
    if role is None:
        if age_s is not None:
            backend.put_credentials(handle, "")
        return
    if age_s is not None and not credentials.is_due(role, age_s):
        return
    found = credentials.CACHE.find(attempt, role)
    if found is None:
        return
    backend.put_credentials(handle, json.dumps(answers.render(role.provider, found)))
    if not _live().filter(pk=attempt.pk).exists():  # it has ended meanwhile, and nobody would remove them
        backend.put_credentials(handle, "")
