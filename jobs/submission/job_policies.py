"""Job policies of a quota: the default time limit, and the limits that a job exceeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobs.dialects.base import Note, Parsed, Problem
from jobs.spec import JobSpec
from jobs.submission.resource_requests import level_of, parts_of
from jobs.submission.targets import find_excess_of_public
from quotas.limits.job_limits import JobLimit, JobLimits, limits_for
from quotas.models import Quota, User


def set_default_time_limit(limits: JobLimits, parsed: Parsed) -> tuple[JobSpec, tuple[Note, ...]]:
    """Return the job with the quota's default time limit where it has none, and a note on it."""
    spec, seconds = parsed.spec, limits.default_s
    if spec.time_limit_s is not None or seconds is None:
        return spec, ()
    note = Note("default_time_limit", "/time_limit_s", {"seconds": seconds, "quota": limits.quota.name})
    return spec.model_copy(update={"time_limit_s": seconds}), (note,)


def find_excess(user: User, quota: Quota, spec: JobSpec, *, jobs: int = 1) -> tuple[Problem, ...]:
    """Return the limits of the quota's policies and of public resources that `jobs` such jobs exceed.

    Pointers are the JobSpec's.
    """
    return find_excess_of(limits_for(user, quota), spec, jobs=jobs)


def find_excess_of(limits: JobLimits, spec: JobSpec, *, jobs: int = 1) -> tuple[Problem, ...]:
    """The same for limits that are loaded already."""
    public = find_excess_of_public(limits.quota, spec)
    return (*public, *_find(limits, spec), *_find_waiting(limits, jobs)) if limits.limits else public


def _find(limits: JobLimits, spec: JobSpec) -> Iterator[Problem]:
    gpus = sum(role.replicas * role.resources.gpus for role in spec.roles)
    values = (
        ("highest_priority", level_of(spec, limits.quota), 1, "/priority"),
        ("time_limit_minutes", spec.time_limit_s or 0, 60, "/time_limit_s"),
        ("job_gpus", gpus, 1, "/roles/0/resources/gpus"),
    )
    for name, wanted, scale, pointer in values:
        most = limits.number(name)
        if most is not None and wanted > most * scale:
            params = {"wanted": wanted, "limit": most * scale}
            yield _problem(f"policy_{name}", pointer, limits.limits[name], params)
    if (allowed := limits.limits.get("gpu_types")) is not None:
        yield from _find_types(allowed, limits.gpu_types(), spec)


def _find_types(allowed: JobLimit, names: tuple[str, ...], spec: JobSpec) -> Iterator[Problem]:
    known = {name.casefold() for name in names}
    for index, part in enumerate(parts_of(spec)):
        for kind, count in part.each.gpus.items():
            if count and kind.casefold() not in known:
                params: dict[str, str | int] = {"types": ", ".join(names)}
                if kind:
                    params["gpu_type"] = kind
                yield _problem("policy_gpu_types", f"/roles/{index}/resources/gpu_type", allowed, params)
                return


def _find_waiting(limits: JobLimits, jobs: int) -> Iterator[Problem]:
    most = limits.number("waiting_jobs")
    if most is None:
        return
    waiting = limits.count_waiting()
    if waiting + jobs > most:
        params: dict[str, str | int] = {"waiting": waiting, "wanted": jobs, "limit": most}
        yield _problem("policy_waiting_jobs", "", limits.limits["waiting_jobs"], params)


def _problem(code: str, pointer: str, limit: JobLimit, params: Mapping[str, str | int]) -> Problem:
    return Problem(code, pointer, params={**params, **limit.source})
