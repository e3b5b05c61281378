"""Every key of Baidu AIHC's `CreateJob` bodies, v2 and v1, with all spellings in which they are met."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.dialects.extras import by
from jobs.dialects.fields import (
    CONSOLE,
    MOST_CPUS,
    MOST_GPUS,
    MOST_MEMORY_MIB,
    MOST_REPLICAS,
    Amount,
    AnyKey,
    Choice,
    Flag,
    Group,
    Integer,
    Limit,
    Quantity,
    Records,
    Text,
    Texts,
)
from jobs.spec import Framework, Resources

PAGE: Final = "AIHC page"
NEWER_PAGE: Final = "AIHC page of 2026"
"""It also takes TFJob and MPIJob."""

SDK: Final = "AIHC SDK"
V1: Final = "AIHC page, v1"

DEFAULTS: Final = Resources()
MOST: Final = 1000


def _kept_text(key: str, help_text: str, source: str = PAGE) -> Text:
    """A string that only AIHC understands."""
    return Text(key=key, source=source, help=help_text, blank=True)


NAME: Final = Text(
    key="name", source=PAGE, path="name", required=True, longest=256, fallback="job", help="Name of the job."
)
QUEUE: Final = Text(
    key="queue",
    source=PAGE,
    path="quota",
    blank=True,
    expected=PAGE,
    aliases=("queueId", "queueID"),
    help="Queue name; in a managed pool, queue ID.",
)
JOB_TYPE: Final = Choice(
    key="jobType",
    source=PAGE,
    path="framework",
    aliases=("jobFramework",),
    meanings={
        "PyTorchJob": Framework.PYTORCH,
        "TFJob": Framework.TENSORFLOW,
        "MPIJob": Framework.MPI,
        "pytorch": Framework.PYTORCH,
    },
    default="PyTorchJob",
    help="Framework: PyTorchJob (default), TFJob or MPIJob.",
)
COMMAND: Final = Text(
    key="command", source=PAGE, path="roles[].command", blank=True, help="Command of every replica."
)
PRIORITY: Final = Choice(
    key="priority",
    source=PAGE,
    path="priority",
    meanings={"high": "8", "normal": "5", "low": "2"},
    help="high, normal (default) or low.",
)

LABEL_KEY: Final = Text(key="key", source=PAGE, path="tags", required=True, help="Name of the label.")
LABEL_VALUE: Final = Text(key="value", source=PAGE, path="tags", blank=True, help="Value of the label.")
LABELS: Final = Records(
    key="labels",
    source=PAGE,
    path="tags",
    keys=(LABEL_KEY, LABEL_VALUE),
    identity="key",
    most=MOST,
    help="Labels of the job.",
)

ENV_NAME: Final = Text(key="name", source=PAGE, path="env", required=True, help="Name of the variable.")
ENV_VALUE: Final = Text(key="value", source=PAGE, path="env", blank=True, help="Value of the variable.")
ENVS: Final = Records(
    key="envs",
    source=PAGE,
    path="env",
    partial=True,
    keys=(ENV_NAME, ENV_VALUE),
    identity="name",
    most=MOST,
    help="Environment variables.",
)

RESOURCE_NAME: Final = Text(
    key="name",
    source=PAGE,
    path="roles[].resources",
    required=True,
    help=("cpu, memory, sharedMemory, or the resource name of a GPU, e.g. baidu.com/a800_80g_cgpu."),
)
CPU: Final = Amount(
    key="quantity",
    source=PAGE,
    path="roles[].resources.cpu_milli",
    quantity=Quantity.CPU,
    default=DEFAULTS.cpu_milli,
    least=Limit(1, CONSOLE),
    most=Limit(MOST_CPUS * 1000, CONSOLE),
    help="CPU cores of each replica.",
)
MEMORY: Final = Amount(
    key="quantity",
    source=PAGE,
    path="roles[].resources.memory_mib",
    quantity=Quantity.MEMORY,
    default=DEFAULTS.memory_mib,
    bare="G",
    least=Limit(1, CONSOLE),
    most=Limit(MOST_MEMORY_MIB, CONSOLE),
    help="Memory of each replica, in GB.",
)
SHARED_MEMORY: Final = Amount(
    key="quantity",
    source=PAGE,
    path="roles[].resources.shm_mib",
    quantity=Quantity.MEMORY,
    default=DEFAULTS.shm_mib,
    bare="G",
    most=Limit(MOST_MEMORY_MIB, CONSOLE),
    help="Shared memory of each replica, in GB.",
)
GPUS: Final = Amount(
    key="quantity",
    source=PAGE,
    path="roles[].resources.gpus",
    quantity=Quantity.COUNT,
    default=0,
    most=Limit(MOST_GPUS, CONSOLE),
    help="Accelerator cards of each replica.",
)
QUANTITY: Final = Amount(
    key="quantity",
    source=PAGE,
    path="roles[].resources",
    quantity=Quantity.MEMORY,
    default=0,
    bare="G",
    most=Limit(MOST_MEMORY_MIB, CONSOLE),
    help="Amount in cores, GB or GPUs, as a number or quoted string.",
)
RESOURCES: Final = Records(
    key="resources",
    source=PAGE,
    path="roles[].resources",
    partial=True,
    keys=(RESOURCE_NAME, QUANTITY),
    identity="name",
    most=MOST,
    help="Resources of each replica.",
)

IMAGE: Final = Text(
    key="image", source=PAGE, path="roles[].image", blank=True, help="Image address with tag."
)
USERNAME: Final = Text(
    key="username", source=PAGE, path="registry_auth.username", blank=True, help="User name at the registry."
)
PASSWORD: Final = Text(
    key="password",
    source=PAGE,
    path="registry_auth.password",
    blank=True,
    help="Password for the image registry.",
)
IMAGE_CONFIG: Final = Group(
    key="imageConfig",
    source=PAGE,
    path="*",
    keys=(USERNAME, PASSWORD),
    help="Credentials for a private image.",
)
REPLICAS: Final = Integer(
    key="replicas",
    source=PAGE,
    path="roles[].replicas",
    default=1,
    least=Limit(1, CONSOLE),
    most=Limit(MOST_REPLICAS, CONSOLE),
    expected=PAGE,
    help="Number of replicas.",
)
ENABLE_RDMA: Final = Flag(
    key="enableRDMA",
    source=PAGE,
    path="roles[].resources.rdma",
    help=("RDMA on self-managed pools: adds rdma/hca, NCCL_IB_DISABLE=0 and 10 GB of shared memory."),
)
COMMAND_INSIDE: Final = Text(
    key="command", source=V1, path="roles[].command", blank=True, partial=True, help="Command (v1)."
)
ROLE: Final = (
    IMAGE,
    IMAGE_CONFIG,
    REPLICAS,
    RESOURCES,
    ENVS,
    ENABLE_RDMA,
    COMMAND_INSIDE,
    Flag(key="hostNetwork", source=PAGE, help="Use the node's network (default with RDMA)."),
)
"""The keys of one JobSpec."""

ROLES: Final = ("Worker", "Chief", "PS", "Evaluator")
"""The keys of a map of JobSpecs, in the order in which they are given to roles of other names."""

JOB_SPEC: Final = Group(
    key="jobSpec", source=PAGE, path="roles", required=True, keys=ROLE, help="Settings of each replica."
)

TYPE: Final = Choice(
    key="type",
    source=PAGE,
    path="mounts[]",
    meanings={
        "pfs": "pfs",
        "hostPath": "file",
        "hostpath": "file",
        "bos": "bos",
        "cfs": "cfs",
        "rapidfs": "rapidfs",
        "dataset": "dataset",
    },
    default="pfs",
    open=True,
    expected=PAGE,
    help="pfs, hostPath, bos, cfs, rapidfs or dataset.",
)
SOURCE_NAME: Final = Text(
    key="name",
    source=PAGE,
    path="mounts[]",
    blank=True,
    partial=True,
    help="ID of the pfs instance or dataset; optional for bos.",
)
SOURCE_PATH: Final = Text(
    key="sourcePath", source=PAGE, path="mounts[].uri", blank=True, help="Path in the storage. Default: /."
)
MOUNT_PATH: Final = Text(
    key="mountPath",
    source=PAGE,
    path="mounts[].path",
    blank=True,
    help="Mount path in the container.",
)
READ_ONLY: Final = Flag(key="readOnly", source=PAGE, path="mounts[].read_only", help="Mount read-only.")
MEDIUM: Final = Text(key="medium", source=PAGE, path="mounts[].options", blank=True, help="Storage type.")
SIZE_LIMIT: Final = Text(
    key="sizeLimit", source=PAGE, path="mounts[].options", blank=True, help="Maximum storage size."
)
OPTIONS: Final = Group(
    key="options",
    source=PAGE,
    path="*",
    keys=(READ_ONLY, MEDIUM, SIZE_LIMIT),
    help="Mount options.",
)
DATA_SOURCES: Final = Records(
    key="datasources",
    source=PAGE,
    path="mounts",
    partial=True,
    aliases=("datasource", "dataSources"),
    keys=(TYPE, SOURCE_NAME, SOURCE_PATH, MOUNT_PATH, OPTIONS),
    identity="mountPath",
    most=MOST,
    help="Locations to mount.",
)

FAULT_TOLERANCE: Final = Flag(
    key="faultTolerance", source=PAGE, path="fault_tolerance.enabled", help="Automatic fault tolerance."
)
FAULT_TOLERANCE_ARGS: Final = Text(
    key="faultToleranceArgs",
    source=PAGE,
    path="fault_tolerance.arguments",
    blank=True,
    help="Fault tolerance arguments: --enable-replace=true --enable-hang-detection=true …",
)
HANG_DETECTION: Final = Flag(
    key="enabledHangDetection",
    source=V1,
    path="fault_tolerance.arguments",
    partial=True,
    help="Check whether the job hangs.",
)
HANG_MINUTES: Final = Integer(
    key="hangDetectionTimeoutMinutes",
    source=V1,
    path="fault_tolerance.arguments",
    partial=True,
    most=Limit(10**9 - 1, CONSOLE),
    help="Minutes without activity.",
)
FAULT_LIMIT: Final = Integer(
    key="faultToleranceLimit",
    source=V1,
    path="fault_tolerance.arguments",
    partial=True,
    most=Limit(10**9 - 1, CONSOLE),
    help="Maximum number of restarts.",
)
FAULT_CONFIG: Final = Group(
    key="faultToleranceConfig",
    source=V1,
    path="*",
    keys=(HANG_DETECTION, HANG_MINUTES, FAULT_LIMIT),
    help="Hang detection and restarts, v1: read as the arguments of faultToleranceArgs.",
)
FAULT_CONFIG_ARGUMENTS: Final[Mapping[Flag | Integer, str]] = {
    HANG_DETECTION: "enable-hang-detection",
    HANG_MINUTES: "hang-detection-log-timeout-minutes",
    FAULT_LIMIT: "max-num-of-unconditional-retry",
}
"""What v2 calls each key of v1's configuration."""

ENABLE_TENSORBOARD: Final = Flag(
    key="enable",
    source=PAGE,
    path="tensorboard.enabled",
    aliases=("enableTensorboard",),
    help="Run TensorBoard.",
)
LOG_PATH: Final = Text(
    key="logPath",
    source=PAGE,
    path="tensorboard.log_path",
    blank=True,
    help="Log folder that TensorBoard displays.",
)
TENSORBOARD: Final = Group(
    key="tensorboardConfig",
    source=PAGE,
    path="*",
    keys=(ENABLE_TENSORBOARD, LOG_PATH),
    help="TensorBoard settings of the job.",
)
RETENTION: Final = Text(
    key="retentionPeriod",
    source=SDK,
    path="reserve_after.seconds",
    blank=True,
    help="Time to keep the ended job and its files: 1m, 1h, 1d.",
)
ENABLE_BCCL: Final = Flag(
    key="enableBccl",
    source=PAGE,
    path="software.bccl",
    help="Load BCCL; AIHC requires at least 2 replicas with 8 GPUs each, RDMA, and A800 or HPAS.",
)

ALERTS: Final = "/alertConfig"
"""Where the extras of a job have its alerts."""

ALERT_ITEMS: Final = ("jobRunning", "jobFT", "jobFailed")
"""Events of which the owner's notification channels tell where a job asks for an alert."""


def list_alerts(value: object) -> tuple[str, ...]:
    """Return the known events that an `alertConfig` names."""
    items = value.get("alertItems") if isinstance(value, dict) else None
    return tuple(item for item in ALERT_ITEMS if isinstance(items, list) and item in items)


JOB: Final[tuple[AnyKey, ...]] = (
    NAME,
    QUEUE,
    JOB_TYPE,
    COMMAND,
    JOB_SPEC,
    LABELS,
    PRIORITY,
    DATA_SOURCES,
    ENABLE_BCCL,
    FAULT_TOLERANCE,
    FAULT_TOLERANCE_ARGS,
    TENSORBOARD,
    Group(
        key="alertConfig",
        source=PAGE,
        help="Alerts: the owner's notification channels tell of the events; the rest is kept for AIHC.",
        keys=(
            _kept_text("alertIds", "Alert IDs."),
            _kept_text("instanceId", "Monitoring instance."),
            _kept_text("alertName", "Alert name."),
            Texts(key="alertItems", source=PAGE, help="Events to alert on: jobRunning, jobFT, jobFailed …"),
            _kept_text("for", "Required duration."),
            _kept_text("description", "Message."),
            _kept_text("notifyRuleId", "Recipients."),
            _kept_text("severity", "Severity."),
        ),
    ),
    RETENTION,
    FAULT_CONFIG,
    _kept_text("resourcePoolId", "Resource pool; part of the URL, not of the body."),
)
"""The keys of the whole body."""


AMOUNTS: Final = (
    ("cpu", CPU),
    ("memory", MEMORY),
    ("sharedMemory", SHARED_MEMORY),
    ("baidu.com/…", GPUS),
    (
        "baidu.com/…",
        Text(
            key="name",
            source=PAGE,
            path="roles[].resources.gpu_type",
            help="baidu.com/ and the type of the cards.",
        ),
    ),
)
"""What the elements of `resources` say, by their names."""


_KINDS: Final = {word.lower(): meaning for word, meaning in TYPE.meanings.items()}


def source_name(source: Mapping[str, object]) -> object:
    """Return what tells a data source apart: where it is mounted, or else what its type is known by."""
    kind = _KINDS.get(str(source.get(TYPE.key) or TYPE.default).lower(), "")
    place = SOURCE_PATH if kind in {"file", "bos"} else SOURCE_NAME
    return source.get(MOUNT_PATH.key) or (source.get(place.key) if kind else "")


NAMES: Final = {
    "labels": by("key"),
    "envs": by("name"),
    "resources": by("name"),
    "datasources": source_name,
}
"""What tells the elements of lists apart."""
