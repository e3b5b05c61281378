"""A job as its framework sees it, made of a JobSpec."""

from __future__ import annotations

from jobs.node.frameworks.job import (
    Endpoints,
    FrameworkJob,
    FrameworkRole,
    count_processes,
    count_tolerated,
)
from jobs.spec import JobSpec


def make_framework_job(
    spec: JobSpec, job_id: str, endpoints: Endpoints, *, checks_nodes: bool
) -> FrameworkJob:
    """Return the job, by the engine's own name for it."""
    roles = (
        FrameworkRole(
            role.name,
            role.replicas,
            count_processes(role.resources.gpus, {**spec.env, **role.env}),
            count_tolerated(role.replicas, role.completion.min_failed),
            role.restart.limit,
        )
        for role in spec.roles
    )
    return FrameworkJob(spec.framework, job_id, tuple(roles), endpoints, checks_nodes=checks_nodes)
