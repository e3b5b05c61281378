"""Completion policies of a DLC job's roles, and what a request says for them.

SuccessPolicy (TFJob) as the page of the command line says it: ChiefWorker, the job has succeeded as soon
as its chief has; AllWorkers, the default, when all have.  Parameter servers never end by themselves, so
that beside them the workers decide.  In the other job types the master, launcher or head decides, if there
is one.  Any failed node fails the job.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from jobs.dialects.dlc.job_types import JobType
from jobs.spec import CompletionPolicy

CHIEF_WORKER: Final = "ChiefWorker"
ALL_END: Final = CompletionPolicy()


@dataclass(frozen=True, slots=True)
class Participant:
    """A role, and its say in the job's success."""

    type: str
    replicas: int
    is_chief: bool = False
    considered: bool = False


@dataclass(frozen=True, slots=True)
class Success:
    """Everything that a request says about the job's success."""

    policy: str
    parts: tuple[Participant, ...]


def decide_completion(job_type: JobType, success: Success) -> tuple[CompletionPolicy, ...]:
    """Return the completion policy of each role."""
    chosen = _decider(job_type, success)
    return tuple(
        CompletionPolicy(min_succeeded=chosen[1] if chosen and part is chosen[0] else None)
        for part in success.parts
    )


def with_minimum(
    job_type: JobType, policy: CompletionPolicy, replicas: int, least: int | None
) -> CompletionPolicy:
    """Return the policy of a role that goes on while `least` of its replicas live, if its job is elastic."""
    if not job_type.is_elastic or least is None or not 0 < least < replicas:
        return policy
    return policy.model_copy(update={"min_failed": replicas - least + 1})


def find_minimum(job_type: JobType, policy: CompletionPolicy, replicas: int) -> int | None:
    """Return the `least` by which `with_minimum` makes this policy; None for the default of all replicas."""
    if not job_type.is_elastic or policy.min_failed is None or not 1 < policy.min_failed <= replicas:
        return None
    return replicas - policy.min_failed + 1


def choose_success(
    job_type: JobType, parts: Sequence[Participant], wanted: Sequence[CompletionPolicy]
) -> Success:
    """Return what is to be written to be read as `wanted`, or as near to it as DLC comes.

    The minimum of an elastic role is written beside it.
    """
    wanted = [
        policy.model_copy(update={"min_failed": 1})
        if find_minimum(job_type, policy, part.replicas) is not None
        else policy
        for part, policy in zip(parts, wanted, strict=True)
    ]
    plain = Success("", tuple(parts))
    return next(
        (
            each
            for each in _choices(job_type, plain)
            if list(decide_completion(job_type, each)) == list(wanted)
        ),
        plain,
    )


def _choices(job_type: JobType, plain: Success) -> Iterator[Success]:
    """Yield every way of saying it, the plainest first."""
    yield plain
    if _has_policy(job_type):
        yield replace(plain, policy=CHIEF_WORKER)
    for index, part in enumerate(plain.parts):
        marked = replace(part, is_chief=True) if part.replicas == 1 else replace(part, considered=True)
        yield replace(plain, parts=(*plain.parts[:index], marked, *plain.parts[index + 1 :]))
    yield replace(plain, parts=tuple(replace(part, considered=True) for part in plain.parts))


def _decider(job_type: JobType, success: Success) -> tuple[Participant, int] | None:
    """Return the role that decides, and its needed successes; None when all roles have to end."""
    parts = success.parts
    considered = [part for part in parts if part.considered]
    if len(parts) > 1:
        marked = considered or [part for part in parts if part.is_chief][:1]
        if marked:
            return (marked[0], marked[0].replicas) if len(marked) == 1 else None
    if _has_policy(job_type):
        return _by_policy(job_type, success)
    for part in parts:
        if part.type in job_type.deciders and len(parts) > 1:
            return part, part.replicas
    return None


def _has_policy(job_type: JobType) -> bool:
    return bool(job_type.servers)


def _by_policy(job_type: JobType, success: Success) -> tuple[Participant, int] | None:
    by_type = {part.type: part for part in success.parts}
    chief, worker = by_type.get("Chief"), by_type.get("Worker")
    if success.policy == CHIEF_WORKER and (chief or worker):
        return (chief, chief.replicas) if chief else (worker, 1) if worker else None
    if any(server in by_type for server in job_type.servers) and (decider := worker or chief):
        return decider, decider.replicas
    return None
