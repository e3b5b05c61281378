"""What is tested of a rule: a job and the target of which it speaks, and one where it says less."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from jobs.form.rules import Effect, Page, Section
from jobs.form.target import JobTarget
from jobs.spec import Framework, JobSpec, Mount, Network, Resources, RoleSpec
from quotas.admission import Price
from quotas.models import Kind, Source

ZH, JA = (Page.CHINESE,), (Page.JAPANESE,)
BOTH = (Page.CHINESE, Page.JAPANESE)

QUOTA = JobTarget(most_gpus=None)
PUBLIC = JobTarget(source=Source.PUBLIC, most_gpus=2, most_cpu_milli=8000)
SPOT = JobTarget(
    source=Source.PREEMPTIBLE,
    kind=Kind.LINGJUN,
    prices={"A100": Price(3_000_000, 1_500_000), "": Price(10_000, 10_000)},
)
LINGJUN = JobTarget(kind=Kind.LINGJUN)
GPUS = Resources(gpus=2, gpu_type="A100")
CPFS = Mount(uri="nas://cpfs-1.cn-hangzhou/", path="/mnt/data")
BMCPFS = Mount(uri="bmcpfs://bmcpfs-1/", path="/mnt/data")
OSS = Mount(uri="oss://bucket.oss-cn-hangzhou.aliyuncs.com/", path="/mnt/data")
NAS = Mount(uri="nas://31a8e4.cn-hangzhou/", path="/mnt/data")
VPC = Network(vpc="vpc-1")


def job(*roles: RoleSpec, **fields: Any) -> JobSpec:
    return JobSpec(name="job", roles=roles or (role(),), **fields)


def role(**fields: Any) -> RoleSpec:
    return RoleSpec(**{"name": "Worker", "command": "python train.py", **fields})


def options(**values: str) -> JobSpec:
    framework = Framework.RAY if any(key.startswith("Ray") for key in values) else Framework.PYTORCH
    return job(framework=framework, framework_options=values)


@dataclass(frozen=True)
class Case:
    """A job and target of which the rule says something about `path`, and one where it says less.

    What it says is `effect`, and whether the job is against it; less is nothing at all, or nothing against.
    """

    code: str
    pages: tuple[Page, ...]
    section: Section
    spec: JobSpec
    target: JobTarget
    path: str
    effect: Effect
    broken: bool = False
    less: tuple[JobSpec, JobTarget] = field(default_factory=lambda: (job(), QUOTA))
