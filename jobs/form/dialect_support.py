"""The fields that a dialect does not support, found by rendering a job that sets every field."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Final

from jobs import dialects
from jobs.dialects.spans import split as steps_of
from jobs.form.fields import FIELDS, MOUNTS, ROWS, Field, Rows
from jobs.form.values import Parts, get_value, parts_of, split_pointer
from jobs.spec import (
    After,
    Alert,
    AlertComparison,
    AlertMetric,
    Bid,
    Check,
    CodeSource,
    CompletionPolicy,
    EndSignal,
    FaultTolerance,
    Framework,
    Idle,
    JobSpec,
    Mount,
    Network,
    NodeChoice,
    PodContainer,
    Port,
    RegistryAuth,
    Requirements,
    Reservation,
    Resources,
    RestartCondition,
    RestartPolicy,
    RestartScope,
    RetryPolicy,
    RoleSpec,
    SecretRef,
    Software,
    TensorBoard,
    Visibility,
)

DEFAULT_DIALECT: Final = "dlc"
"""The dialect of a new form, and of one whose own dialect lacks a field."""

LOST: Final = "lost"


@cache
def unsupported_fields(dialect: str) -> frozenset[str]:
    """Return the keys of the fields and lists that the dialect does not support."""
    samples = [(parts_of(sample), _find_lost(dialect, sample)) for sample in SAMPLES]
    every: tuple[Field | Rows, ...] = (*FIELDS.values(), *ROWS.values())
    return frozenset(each.key for each in every if each.path and not _is_supported(each.path, samples))


def _find_lost(dialect: str, sample: JobSpec) -> set[str]:
    """Return the paths of the sample that the dialect drops, with `*` for numbers."""
    notes = dialects.get(dialect).render(sample, {}).notes
    return {_generalise(note.pointer) for note in notes if note.code == LOST}


def _generalise(pointer: str) -> str:
    return "/" + "/".join("*" if token.isdigit() else token for token in steps_of(pointer))


def _is_supported(path: str, samples: Iterable[tuple[Parts, set[str]]]) -> bool:
    """Tell whether the dialect keeps the path of one of the samples."""
    return any(
        get_value(parts, split_pointer(path, (0,))) and not _is_lost(path, lost) for parts, lost in samples
    )


def _is_lost(path: str, lost: set[str]) -> bool:
    """Tell whether the path, a part around it or the one thing in it is lost; of mounts, one may be."""
    above = any(each == path or path.startswith(f"{each}/") for each in lost)
    return above or (path != MOUNTS.path and any(each.startswith(f"{path}/") for each in lost))


def _container(name: str, command: tuple[str, ...]) -> PodContainer:
    image = f"registry.example.com/team/{name}:1"
    return PodContainer(name=name, image=image, command=command, env={"FROM": "there"})


def _sample(code: CodeSource, resources: Resources, bid: Bid, software: Software) -> JobSpec:
    role = RoleSpec(
        name="Worker",
        replicas=2,
        command="train",
        image="registry.example.com/team/image:1",
        resources=resources,
        ports=(Port(label="web", begin_at=8080, count=1),),
        completion=CompletionPolicy(min_failed=2, min_succeeded=1),
        restart=RestartPolicy(condition=RestartCondition.EXIT_CODE, limit=2),
        bid=bid,
        nodes=NodeChoice(only=("n1",), never=("n2",), labels={"kind": "fast"}),
        init_containers=(_container("fetch", ("sh", "-c", "fetch && check")),),
        sidecars=(_container("metrics", ("metrics", "--all")),),
        shared_paths=("/shared",),
    )
    return JobSpec(
        name="sample",
        description="words",
        tags={"team": "vision"},
        framework=Framework.PYTORCH,
        roles=(role,),
        env={"A": "1"},
        secret_env={"B": SecretRef(name="B")},
        registry_auth=RegistryAuth(
            registry="registry.example.com", username="me", password=SecretRef(name="P"), file_uri="/auth"
        ),
        mounts=(
            Mount(id="d-1", path="/mnt/d", read_only=True),
            Mount(uri="oss://b.e/x/", path="/mnt/x", options={"mountType": "ossfs"}),
        ),
        code=code,
        software=software,
        requirements=Requirements(packages=("numpy",), directory="/root/code"),
        workspace="1",
        quota="q",
        priority=3,
        retry=RetryPolicy(limit=2),
        time_limit_s=7200,
        end_signal=EndSignal(signal="USR2", seconds_before=60),
        grace_s=60,
        keep_failed_s=3600,
        hold=True,
        after=(After(job="abc"),),
        not_before="2027-01-31T22:00:00+08:00",
        idle=Idle.ACCEPT,
        cpu_affinity=True,
        reserve_after=Reservation(seconds=600, when="failed"),
        fault_tolerance=FaultTolerance(
            enabled=True,
            arguments="--enable-job-restart=True",
            patterns=("lost its shard",),
            restart_scope=RestartScope.REPLICA,
        ),
        sanity_check=Check(enabled=True, arguments="--sanity-check-timing=AfterJobFaultTolerant"),
        alert=Alert(metric=AlertMetric.GPU, comparison=AlertComparison.ABOVE, value=90, minutes=5),
        tensorboard=TensorBoard(enabled=True, log_path="/root/logs"),
        network=Network(vpc="v", switch="s", security_group="g", cidrs=("10.0.0.0/8",), gateway="eth1"),
        instance_role="acs:ram::1:role/x",
        visibility=Visibility.PUBLIC,
        framework_options={"createSvcForAllWorkers": "true"},
    )


_AMOUNTS: Final = Resources(
    cpu_milli=2000, memory_mib=2048, shm_mib=1024, disk_mib=1024, gpus=1, gpu_type="A100", rdma=True
)
SAMPLES: Final = (
    _sample(
        CodeSource(id="code-1", branch="main", commit="abc", path="/root/x"),
        _AMOUNTS,
        Bid(discount_percent=50),
        Software(modules=("cuda/12.4",), conda="/opt/conda/envs/train"),
    ),
    _sample(
        CodeSource(
            uri="https://git.example.com/a.git", branch="main", commit="abc", path="/root/x", submodules=True
        ),
        Resources(instance_type="ecs.g6.large", cpu_milli=2000, memory_mib=8192),
        Bid(price_micro=1_000_000),
        Software(venv="/home/me/venv"),
    ),
)
"""Two jobs, since some fields exclude each other."""
