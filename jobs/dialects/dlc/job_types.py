"""DLC's job types: the framework of each, its roles, and those that a JobSpec is written as."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from jobs.spec import Framework, JobSpec


@dataclass(frozen=True, slots=True)
class JobType:
    """One JobType.

    `roles` are the values of `Type` that it knows, in the order in which they are given to roles of other
    names; empty where no page lists them, so that any is accepted.  `deciders` end the job by ending well;
    `servers` never end by themselves.  `more_workers` allows `Worker-name`.
    """

    name: str
    framework: Framework | None
    roles: tuple[str, ...] = ()
    deciders: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    more_workers: bool = False

    @property
    def is_elastic(self) -> bool:
        """Return whether a job goes on with fewer replicas than it began with."""
        return self.framework is Framework.ELASTIC_BATCH

    def role(self, name: str) -> str | None:
        """Return the `Type` that `name` means, in this job type's own spelling; None when it knows none."""
        for role in self.roles:
            if role.lower() == name.lower():
                return role
        if self.more_workers and name.lower().startswith("worker-") and len(name) > len("worker-"):
            return "Worker" + name[len("worker") :]
        return name if not self.roles else None


_MASTER_AND_WORKERS: Final = ("Worker", "Master")

JOB_TYPES: Final = (
    JobType(
        "TFJob",
        Framework.TENSORFLOW,
        ("Worker", "PS", "Chief", "Evaluator", "GraphLearn"),
        servers=("PS", "GraphLearn"),
    ),
    JobType("PyTorchJob", Framework.PYTORCH, _MASTER_AND_WORKERS, ("Master",)),
    JobType("MPIJob", Framework.MPI, deciders=("Launcher",)),
    JobType("XGBoostJob", Framework.XGBOOST, _MASTER_AND_WORKERS, ("Master",)),
    JobType("OneFlowJob", Framework.ONEFLOW, _MASTER_AND_WORKERS, ("Master",)),
    JobType("ElasticBatchJob", Framework.ELASTIC_BATCH, _MASTER_AND_WORKERS, ("Master",)),
    JobType("SlurmJob", Framework.SLURM),
    JobType("RayJob", Framework.RAY, ("Head", "Worker"), ("Head",), more_workers=True),
    JobType("DataJuicerJob", Framework.DATA_JUICER),
    JobType("ElasticBatch", Framework.ELASTIC_BATCH, _MASTER_AND_WORKERS, ("Master",)),
    JobType("FlinkBatchJob", None),
)
"""The DLC page's types and roles; the last two are other clients' (`ElasticBatch` stands in DLC's own table
of roles).  That a master, launcher or head decides is the rule of the open-source operators of the same
kinds; the pages speak of TFJob alone."""

BY_NAME: Final = {job_type.name: job_type for job_type in JOB_TYPES}

OTHER_NAMES: Final = {
    "main": "Worker",
    "task": "Worker",
    "node": "Worker",
    "parameter_server": "PS",
    "parameterserver": "PS",
    "ps_server": "PS",
    "launcher": "Master",
}
"""Names of roles in other systems, and the `Type` that they most resemble."""

_GUESSED: Final = ("PyTorchJob", "TFJob", "RayJob")
"""The types tried, in this order, for a job without a framework."""

_NOT_IN_TYPES: Final = re.compile(r"[^A-Za-z0-9\-]+")


def find_job_type(framework: Framework) -> JobType:
    """Return the job type that `framework` is written as."""
    return next(job_type for job_type in JOB_TYPES if job_type.framework is framework)


def with_known_types(value: object) -> object:
    """Return the request with its role types as the job type spells them."""
    if not isinstance(value, dict) or not isinstance(value.get("JobSpecs"), list):
        return value
    job_type = BY_NAME.get(str(value.get("JobType")))
    roles = [
        {**role, "Type": (job_type and job_type.role(str(role.get("Type")))) or role.get("Type")}
        for role in value["JobSpecs"]
        if isinstance(role, dict)
    ]
    return {**value, "JobSpecs": roles}


def choose_job_type(spec: JobSpec, extras: Mapping[str, object]) -> JobType:
    """Return the framework's job type; without a framework the kept one, or the first whose roles fit."""
    if spec.framework is not None:
        return find_job_type(spec.framework)
    kept = extras.get("/JobType")
    if isinstance(kept, str) and kept in BY_NAME:
        return BY_NAME[kept]
    names = [_known_as(role.name) for role in spec.roles]
    for name in _GUESSED:
        if all(BY_NAME[name].role(role) for role in names):
            return BY_NAME[name]
    return BY_NAME["PyTorchJob" if len(names) <= len(BY_NAME["PyTorchJob"].roles) else "TFJob"]


def choose_role_types(
    spec: JobSpec, chosen: JobType, named: Mapping[str, str] = MappingProxyType({})
) -> tuple[str, ...]:
    """Return a `Type` for each role: as it was `named`, or its own name, else the nearest that is free."""
    wanted = {role.name: chosen.role(named.get(role.name, role.name)) for role in spec.roles}
    taken = {name for name in wanted.values() if name}
    types: list[str] = []
    for role in spec.roles:
        own = wanted[role.name]
        if own is None or own in types:
            own = _free(role.name, chosen, taken | set(types))
        types.append(own)
    return tuple(types)


def _free(name: str, chosen: JobType, taken: set[str]) -> str:
    near = _known_as(name)
    for candidate in (near, *chosen.roles):
        known = chosen.role(candidate) if chosen.roles else None
        if known and known not in taken:
            return known
    plain = _NOT_IN_TYPES.sub("-", name).strip("-") or "role"
    candidate, number = f"Worker-{plain}" if chosen.more_workers else plain, 2
    while candidate in taken:
        candidate, number = f"{candidate}-{number}", number + 1
    return candidate


def _known_as(name: str) -> str:
    return OTHER_NAMES.get(name.lower(), name)
