"""JobSpecs that say one thing: for every path, values that are not its default."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from jobs.spec import JobSpec

BASE: Final[dict[str, Any]] = {
    "name": "job",
    "framework": "pytorch",
    "roles": [{"name": "Worker", "command": "true", "image": "registry.example.com/image:1"}],
}
"""What every probe says besides."""

_TENSORFLOW: Final[dict[str, Any]] = {
    "framework": "tensorflow",
    "roles": [{}, {"name": "Chief", "command": "true", "image": "registry.example.com/image:1"}],
}
_GPUS: Final[dict[str, Any]] = {
    "roles": [{"resources": {"gpus": 8, "gpu_type": "a800_80g_cgpu", "memory_mib": 65536}}]
}
_PORT: Final = {"label": "default", "begin_at": 8080}
_DLC_ARGUMENTS: Final = "--job-execution-mode Sync"


def _role(**more: Any) -> dict[str, Any]:
    return {"roles": [more]}


def _resources(**more: Any) -> dict[str, Any]:
    return _role(resources=more)


def _mounts(**more: Any) -> dict[str, Any]:
    return {"mounts": [more]}


def _code(**more: Any) -> dict[str, Any]:
    return {"code": more}


def _containers(kind: str) -> dict[str, tuple[dict[str, Any], ...]]:
    """Return what to say for each field of the containers of a kind."""
    values: dict[str, Any] = {
        "name": "one",
        "image": "i:1",
        "command": ["sh", "-c"],
        "args": ["true"],
        "working_dir": "/data",
        "env": {"A": "1"},
    }
    return {
        f"roles[].{kind}[].{member}": (_role(**{kind: [{"name": "one", member: value}]}),)
        for member, value in values.items()
    }


SAYS: Final[dict[str, tuple[dict[str, Any], ...]]] = {
    "name": ({"name": "bert"}, {"name": "bert-base_2"}),
    "description": ({"description": "Purpose"},),
    "tags": ({"tags": {"team": "vision"}},),
    "framework": tuple(
        {"framework": name}
        for name in (
            "tensorflow",
            "pytorch",
            "elasticbatch",
            "xgboost",
            "oneflow",
            "mpi",
            "slurm",
            "ray",
            "datajuicer",
        )
    ),
    "roles[].name": (_role(name="Worker"), _role(name="Master"), _role(name="task_1"), _TENSORFLOW),
    "roles[].replicas": (_role(replicas=4),),
    "roles[].command": (
        _role(command="python train.py --lr=0.1"),
        _role(command="set -e\npython 'a b.py' && echo \"done\"\n"),
        {"roles": [{"command": "one"}, {"name": "Master", "command": "two", "image": "i"}]},
    ),
    "roles[].image": (
        _role(image="registry.example.com/other:2"),
        {"roles": [{"image": "one"}, {"name": "Master", "command": "true", "image": "two"}]},
    ),
    "roles[].resources.cpu_milli": (_resources(cpu_milli=4000), _resources(cpu_milli=500)),
    "roles[].resources.memory_mib": (_resources(memory_mib=16384), _resources(memory_mib=1536)),
    "roles[].resources.shm_mib": (_resources(shm_mib=512, memory_mib=4096),),
    "roles[].resources.disk_mib": (_resources(disk_mib=10240),),
    "roles[].resources.gpus": (_resources(gpus=2, gpu_type="V100"), _resources(gpus=1)),
    "roles[].resources.gpu_type": (_resources(gpus=2, gpu_type="V100"),),
    "roles[].resources.instance_type": (_resources(instance_type="ecs.g7.xlarge"),),
    "roles[].resources.rdma": (_resources(rdma=True, **_GPUS["roles"][0]["resources"]),),
    "roles[].ports[].label": (_role(ports=[_PORT]), _role(ports=[{"label": "jupyter"}])),
    "roles[].ports[].begin_at": (_role(ports=[_PORT]),),
    "roles[].ports[].count": (_role(ports=[_PORT | {"count": 3}]),),
    "roles[].completion.min_failed": (_role(replicas=4, completion={"min_failed": 2}),),
    "roles[].completion.min_succeeded": (
        _role(replicas=4, completion={"min_succeeded": 1}),
        {**_TENSORFLOW, "roles": [{}, {**_TENSORFLOW["roles"][1], "completion": {"min_succeeded": 1}}]},
    ),
    "roles[].restart.condition": (
        {"roles": [{"restart": {"condition": "exit_code"}}], "retry": {"limit": 3}},
        {"roles": [{"restart": {"condition": "never"}}, {"name": "Master", "command": "true", "image": "i"}]}
        | {"retry": {"limit": 3}},
    ),
    "roles[].restart.limit": (_role(restart={"limit": 2}),),
    "roles[].env": ({"roles": [{"env": {"OWN": "1"}}, {"name": "Master", "command": "true", "image": "i"}]},),
    "roles[].bid.discount_percent": (_role(bid={"discount_percent": 40}),),
    "roles[].bid.price_micro": (_role(bid={"price_micro": 11_000}),),
    "roles[].nodes.only": (
        _role(nodes={"only": ["node-1", "node-2"]}),
        _role(nodes={"only": ["node-1", "node-2"]}, replicas=2),
    ),
    "roles[].nodes.never": (_role(nodes={"never": ["node-9"]}),),
    "roles[].nodes.labels": (
        _role(nodes={"labels": {"zone": "a"}}),
        _role(nodes={"labels": {"a100": "true"}}),
    ),
    **_containers("init_containers"),
    **_containers("sidecars"),
    "roles[].shared_paths": (_role(shared_paths=["/shared"], init_containers=[{"name": "one"}]),),
    "env": ({"env": {"STAGE": "train"}}, {"env": {"LIST": 'a,b="c" $d'}}),
    "secret_env": ({"secret_env": {"HF_TOKEN": {"name": "hf"}}},),
    "registry_auth.registry": ({"registry_auth": {"registry": "registry.example.com", "username": "ada"}},),
    "registry_auth.username": ({"registry_auth": {"username": "ada"}},),
    "registry_auth.password": ({"registry_auth": {"username": "ada", "password": {"name": "registry"}}},),
    "registry_auth.file_uri": ({"registry_auth": {"file_uri": "hdfs://nn/auth"}},),
    "mounts[].purpose": tuple(
        _mounts(purpose=purpose, uri="pfs://fs-1/x", read_only=purpose == "code")
        for purpose in ("output", "code")
    ),
    "mounts[].id": (_mounts(id="d-1"),),
    "mounts[].uri": (
        _mounts(uri="pfs://fs-1/data"),
        _mounts(uri="oss://bucket/data/", path="/data"),
        _mounts(uri="/srv/data", path="/data"),
    ),
    "mounts[].path": (
        _mounts(id="d-1", path="/data"),
        _mounts(uri="pfs://fs-1/data", path="/data"),
        _mounts(uri="/srv/data", path="/data"),
    ),
    "mounts[].read_only": (
        _mounts(uri="pfs://fs-1/data", path="/data", read_only=True),
        _mounts(uri="/srv/data", path="/data", read_only=True),
    ),
    "mounts[].options": (_mounts(uri="pfs://fs-1/data", path="/data", options={"medium": "ssd"}),),
    "code.id": (_code(id="code-1"),),
    "code.uri": (_code(uri="https://git.example.com/team/train.git", path="/code"),),
    "code.branch": (_code(id="code-1", branch="main"),),
    "code.commit": (_code(id="code-1", commit="44da109b5"),),
    "code.path": (_code(id="code-1", path="/code"),),
    "code.submodules": (_code(uri="https://git.example.com/team/train.git", submodules=True),),
    "requirements.packages": ({"requirements": {"packages": ["numpy==1.16.1", "torch>=1,<2"]}},),
    "requirements.directory": ({"requirements": {"directory": "/code"}},),
    "software.modules": ({"software": {"modules": ["gcc/13.2", "cuda/12.4"]}},),
    "software.conda": ({"software": {"conda": "/opt/conda/envs/train"}},),
    "software.venv": ({"software": {"venv": "/home/ada/venv"}},),
    "software.bccl": ({"software": {"bccl": True}},),
    "workspace": ({"workspace": "ws-1"},),
    "quota": ({"quota": "vision"},),
    "priority": tuple({"priority": number} for number in (2, 5, 8, 9)),
    "retry.limit": ({"retry": {"limit": 3}}, {"retry": {"limit": None}}),
    "retry.on_success": ({"retry": {"limit": None, "on_success": True, "fancy": False}},),
    "retry.fancy": (
        {"retry": {"limit": None, "on_success": True, "fancy": False}},
        {"retry": {"fancy": False}},
    ),
    "time_limit_s": ({"time_limit_s": 3600}, {"time_limit_s": 90}),
    "end_signal.signal": ({"end_signal": {"signal": "USR2"}, "time_limit_s": 3600},),
    "end_signal.seconds_before": ({"end_signal": {"seconds_before": 120}, "time_limit_s": 3600},),
    "grace_s": ({"grace_s": 120},),
    "keep_failed_s": ({"keep_failed_s": 604_800}, {"keep_failed_s": 3600}),
    "hold": ({"hold": True},),
    "not_before": ({"not_before": "2026-12-01T08:00:00Z"},),
    "after[].job": ({"after": [{"job": "k3v9x0q2m7ab"}]}, {"after": [{"job": "a1"}, {"job": "b2"}]}),
    "after[].when": tuple({"after": [{"job": "a1", "when": word}]} for word in ("ended", "failed")),
    "after_never": ({"after": [{"job": "a1"}], "after_never": "hold"},),
    "idle": tuple({"idle": word} for word in ("forbid", "accept", "force")),
    "cpu_affinity": ({"cpu_affinity": True},),
    "reserve_after.seconds": ({"reserve_after": {"seconds": 1800}},),
    "reserve_after.when": tuple(
        {"reserve_after": {"seconds": 1800, "when": word}} for word in ("failed", "succeeded")
    ),
    "fault_tolerance.enabled": ({"fault_tolerance": {"enabled": True, "arguments": "--own=1"}},),
    "fault_tolerance.arguments": (
        {"fault_tolerance": {"enabled": True, "arguments": "--own=1"}},
        {"fault_tolerance": {"enabled": True, "arguments": _DLC_ARGUMENTS}},
    ),
    "fault_tolerance.restart_scope": ({"fault_tolerance": {"enabled": True, "restart_scope": "replica"}},),
    "fault_tolerance.patterns": ({"fault_tolerance": {"enabled": True, "patterns": ["lost shard [0-9]+"]}},),
    **{
        f"alert.{member}": ({"alert": {"metric": "gpu", member: value}},)
        for member, value in {"metric": "cpu", "comparison": "above", "value": 90, "minutes": 5}.items()
    },
    "sanity_check.enabled": ({"sanity_check": {"enabled": True}},),
    "sanity_check.arguments": ({"sanity_check": {"enabled": True, "arguments": "--own=1"}},),
    "tensorboard.enabled": ({"tensorboard": {"enabled": True, "log_path": "/logs"}},),
    "tensorboard.log_path": ({"tensorboard": {"enabled": True, "log_path": "/logs"}},),
    "network.vpc": ({"network": {"vpc": "vpc-1"}},),
    "network.switch": ({"network": {"vpc": "vpc-1", "switch": "vsw-1"}},),
    "network.security_group": ({"network": {"vpc": "vpc-1", "security_group": "sg-1"}},),
    "network.cidrs": ({"network": {"vpc": "vpc-1", "cidrs": ["10.0.0.0/8"]}},),
    "network.gateway": ({"network": {"vpc": "vpc-1", "gateway": "eth1"}},),
    "instance_role": ({"instance_role": "default"}, {"instance_role": "acs:ram::1:role/trainer"}),
    "visibility": ({"visibility": "public"},),
    "framework_options": ({"framework_options": {"ReleaseResourcePolicy": "pod-exit"}},),
}
"""Path → what to say on top of the base, one probe each."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A JobSpec that says something at `path`."""

    path: str
    spec: JobSpec


def probes() -> Iterator[Probe]:
    """Every probe, in the order of the paths."""
    for path, sayings in SAYS.items():
        for saying in sayings:
            yield Probe(path, spec(saying))


def spec(saying: dict[str, Any]) -> JobSpec:
    """The base with `saying` on top."""
    return JobSpec.model_validate_json(json.dumps(_merged(BASE, saying)))


def _merged(below: Any, above: Any) -> Any:
    """Maps and lists member by member; a list may be longer than the one below it."""
    if isinstance(below, dict) and isinstance(above, dict):
        return {key: _merged(below.get(key), above.get(key, below.get(key))) for key in {**below, **above}}
    if isinstance(below, list) and isinstance(above, list):
        return [
            _merged(below[index] if index < len(below) else None, each) for index, each in enumerate(above)
        ]
    return above
