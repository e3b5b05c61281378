"""Checks of a submission before anything is asked."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.backends.base import Submission
from jobs.backends.kubernetes.config import KubernetesConfig
from jobs.backends.kubernetes.objects.code import find_source
from jobs.backends.refusals import refusal, refuse_missing_secrets, refuse_restricted
from jobs.backends.staging import containers
from jobs.dialects import placeholders
from jobs.spec import Framework


def check(submission: Submission, config: KubernetesConfig) -> None:
    """Raise Refused for what the job would lack when it runs."""
    spec = submission.spec
    refuse_missing_secrets(submission, sorted(list_secrets(submission)))
    refuse_restricted(submission)
    if spec.instance_role:
        raise refusal("role_without_network", role=spec.instance_role)
    if spec.framework is Framework.SLURM and spec.replicas > 1:
        raise refusal("only_slurm", nodes=spec.replicas)
    if spec.registry_auth and spec.registry_auth.file_uri:
        raise refusal("auth_elsewhere", place=spec.registry_auth.file_uri)
    for role in spec.roles:
        if not (role.image or config.image):
            raise refusal("role_without_image", role=role.name)
    for field in _list_unsupported(submission, config):
        raise refusal("field", field=field)


def list_secrets(submission: Submission) -> set[str]:
    """Return the names of all secrets that a job needs."""
    return set(_secret_names(submission))


def _secret_names(submission: Submission) -> Iterator[str]:
    spec = submission.spec
    yield from (each.name for each in spec.secret_env.values())
    yield from containers.list_secrets(spec)
    if spec.registry_auth and spec.registry_auth.password:
        yield spec.registry_auth.password.name
    if (source := find_source(submission)) is not None:
        yield from placeholders.list_references(source.uri)


def _list_unsupported(submission: Submission, config: KubernetesConfig) -> Iterator[str]:
    """Yield the fields of the job that have no meaning here, but change what it does."""
    spec = submission.spec
    for role in spec.roles:
        if role.resources.rdma and not config.rdma_resource:
            yield "rdma"
