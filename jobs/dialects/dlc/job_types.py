"""DLC's job types: the framework of each, its roles, and which of them decides the job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from jobs.spec import Framework


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

    def role(self, name: str) -> str | None:
        """The `Type` that `name` means, in this job type's own spelling; None when it knows none."""
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
"""What roles of other systems are called, and the `Type` that they most resemble."""


def of(framework: Framework) -> JobType:
    """The job type that `framework` is written as."""
    return next(job_type for job_type in JOB_TYPES if job_type.framework is framework)


def with_known_types(value: object) -> object:
    """The request with its role types as the job type spells them."""
    if not isinstance(value, dict) or not isinstance(value.get("JobSpecs"), list):
        return value
    job_type = BY_NAME.get(str(value.get("JobType")))
    roles = [
        {**role, "Type": (job_type and job_type.role(str(role.get("Type")))) or role.get("Type")}
        for role in value["JobSpecs"]
        if isinstance(role, dict)
    ]
    return {**value, "JobSpecs": roles}
