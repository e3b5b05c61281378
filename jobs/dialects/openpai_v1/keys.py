"""Every key of an OpenPAI v1 job file: the table of the SCM page beside the schema of OpenPAI v0.14.

The help texts follow the SCM page.  Whatever either of the two accepts is accepted here.
"""

from __future__ import annotations

from typing import Final

from jobs.dialects.fields import (
    CONSOLE,
    MOST_CPUS,
    MOST_GPUS,
    MOST_MEMORY_MIB,
    MOST_PORTS,
    MOST_REPLICAS,
    Bag,
    Flag,
    Integer,
    Limit,
    Records,
    Text,
)
from jobs.dialects.ours import keys as ours
from jobs.spec import MountPurpose

SCM: Final = "SCM page"
OPENPAI: Final = "OpenPAI v0.14"

NAME: Final = r"A-Za-z0-9._~"
MOST_ROLES: Final = 1000

JOB_NAME: Final = Text(
    key="jobName",
    source=f"{SCM}, {OPENPAI}",
    path="name",
    required=True,
    allowed=r"A-Za-z0-9\-._~",
    longest=256,
    fallback="job",
    help="Name of the job, unique among your jobs.",
)
IMAGE: Final = Text(
    key="image",
    source=f"{SCM}, {OPENPAI}",
    path="roles[].image",
    required=True,
    blank=True,
    help="URL of the Docker image. If empty, no image is used (OpenPAI itself requires one).",
)
AUTH_FILE: Final = Text(
    key="authFile",
    source=f"{SCM}, {OPENPAI}",
    path="registry_auth.file_uri",
    blank=True,
    help=("Docker registry authentication file on HDFS: registry, user name and password, one per line."),
)
DATA_DIR: Final = Text(
    key="dataDir",
    source=f"{SCM}, {OPENPAI}",
    path="mounts[data].uri",
    blank=True,
    help="Data directory on HDFS, available to the job as PAI_DATA_DIR.",
)
OUTPUT_DIR: Final = Text(
    key="outputDir",
    source=f"{SCM}, {OPENPAI}",
    path="mounts[output].uri",
    blank=True,
    help=("Output directory on HDFS. Default: $PAI_DEFAULT_FS_URI/Output/$PAI_USER_NAME/$PAI_JOB_NAME."),
)
CODE_DIR: Final = Text(
    key="codeDir",
    source=f"{SCM}, {OPENPAI}",
    path="mounts[code].uri",
    blank=True,
    help="Code directory on HDFS, under 200 MB; the job gets a read-only copy.",
)
VIRTUAL_CLUSTER: Final = Text(
    key="virtualCluster",
    source=f"{SCM}, {OPENPAI}",
    path="quota",
    blank=True,
    help="Virtual cluster that runs the job. If omitted, the default one.",
)
GPU_TYPE: Final = Text(
    key="gpuType",
    source=f"{SCM}, {OPENPAI}",
    path="roles[].resources.gpu_type",
    blank=True,
    help="GPU type. If omitted, any type.",
)
RETRY_COUNT: Final = Integer(
    key="retryCount",
    source=f"{SCM}, {OPENPAI}",
    path="retry",
    default=0,
    least=Limit(-2, OPENPAI),
    help=(
        "Number of retries for a failed job; -1 for unlimited, -2 to also rerun after success (a service)."
    ),
)
KILL_ALL: Final = Integer(
    key="killAllOnCompletedTaskNumber",
    source=OPENPAI,
    help="Obsolete; use minFailedTaskCount and minSucceededTaskCount.",
)

LABEL: Final = Text(
    key="label",
    source=f"{SCM}, {OPENPAI}",
    path="roles[].ports[].label",
    required=True,
    allowed=NAME,
    fallback="port",
    help="Label of the port. The port number is available as PAI_CONTAINER_HOST_label_PORT_LIST.",
)
BEGIN_AT: Final = Integer(
    key="beginAt",
    source=f"{SCM}, {OPENPAI}",
    path="roles[].ports[].begin_at",
    default=0,
    floor=Limit(0, SCM),
    most=Limit(MOST_PORTS, CONSOLE),
    expected=SCM,
    help="First port number; 0 to let the system assign one.",
)
PORT_NUMBER: Final = Integer(
    key="portNumber",
    source=f"{SCM}, {OPENPAI}",
    path="roles[].ports[].count",
    default=1,
    floor=Limit(1, CONSOLE),
    most=Limit(MOST_PORTS, CONSOLE),
    expected=SCM,
    help="Number of ports with this label.",
)
PORT_LIST: Final = Records(
    key="portList",
    source=f"{SCM}, {OPENPAI}",
    path="roles[].ports",
    keys=(LABEL, BEGIN_AT, PORT_NUMBER),
    identity="label",
    most=MOST_ROLES,
    help="Ports that each task needs.",
)

ROLE_NAME: Final = Text(
    key="name",
    source=f"{SCM}, {OPENPAI}",
    path="roles[].name",
    required=True,
    allowed=NAME,
    longest=255,
    fallback="task",
    help="Name of the task role, unique in the job.",
)
TASK_NUMBER: Final = Integer(
    key="taskNumber",
    source=f"{SCM}, {OPENPAI}",
    path="roles[].replicas",
    default=1,
    floor=Limit(1, SCM),
    most=Limit(MOST_REPLICAS, CONSOLE),
    expected=SCM,
    help="Number of tasks in the role, at least 1.",
)
CPU_NUMBER: Final = Integer(
    key="cpuNumber",
    source=f"{SCM}, {OPENPAI}",
    path="roles[].resources.cpu_milli",
    unit="cores",
    default=1,
    floor=Limit(1, SCM),
    most=Limit(MOST_CPUS, CONSOLE),
    expected=SCM,
    help="CPU cores of each task, at least 1.",
)
MEMORY_MB: Final = Integer(
    key="memoryMB",
    source=f"{SCM}, {OPENPAI}",
    path="roles[].resources.memory_mib",
    unit="MiB",
    default=100,
    floor=Limit(1, CONSOLE),
    advised=Limit(100, SCM),
    most=Limit(MOST_MEMORY_MIB, CONSOLE),
    expected=SCM,
    help="Memory of each task in MB, at least 100.",
)
SHM_MB: Final = Integer(
    key="shmMB",
    source=f"{SCM}, {OPENPAI}",
    path="roles[].resources.shm_mib",
    unit="MiB",
    default=64,
    floor=Limit(0, CONSOLE),
    most=Limit(MOST_MEMORY_MIB, CONSOLE),
    help="Shared memory of each task in MB, at most memoryMB. Default: 64.",
)
GPU_NUMBER: Final = Integer(
    key="gpuNumber",
    source=f"{SCM}, {OPENPAI}",
    path="roles[].resources.gpus",
    unit="GPUs",
    default=0,
    floor=Limit(0, SCM),
    most=Limit(MOST_GPUS, CONSOLE),
    expected=SCM,
    help="GPUs of each task, 0 for none.",
)
STORAGE_GB: Final = Integer(
    key="storageGB",
    source=SCM,
    path="roles[].resources.disk_mib",
    unit="GiB",
    default=0,
    floor=Limit(0, CONSOLE),
    most=Limit(MOST_MEMORY_MIB // 1024, CONSOLE),
    help="Disk of each task's container in GB (SCM only).",
)
COMMAND: Final = Text(
    key="command",
    source=f"{SCM}, {OPENPAI}",
    path="roles[].command",
    required=True,
    help="The command that each task runs in a shell.",
)
MIN_FAILED: Final = Integer(
    key="minFailedTaskCount",
    source=f"{SCM}, {OPENPAI}",
    path="roles[].completion.min_failed",
    default=1,
    nullable=True,
    least=Limit(1, f"{SCM}, {OPENPAI}"),
    help="Number of failed tasks after which the whole job fails; null for never.",
)
MIN_SUCCEEDED: Final = Integer(
    key="minSucceededTaskCount",
    source=f"{SCM}, {OPENPAI}",
    path="roles[].completion.min_succeeded",
    default=None,
    nullable=True,
    least=Limit(1, f"{SCM}, {OPENPAI}"),
    help=("Number of succeeded tasks after which the whole job completes; null to wait for all tasks."),
)
TASK_ROLES: Final = Records(
    key="taskRoles",
    source=f"{SCM}, {OPENPAI}",
    path="roles",
    required=True,
    keys=(
        ROLE_NAME,
        TASK_NUMBER,
        CPU_NUMBER,
        MEMORY_MB,
        SHM_MB,
        GPU_NUMBER,
        STORAGE_GB,
        MIN_FAILED,
        MIN_SUCCEEDED,
        COMMAND,
        PORT_LIST,
    ),
    identity="name",
    least=1,
    most=MOST_ROLES,
    help="Task roles, at least one. All tasks of a role are identical.",
)

IS_DEBUG: Final = Flag(
    key="isDebug",
    source=f"{SCM}, {OPENPAI}",
    path="keep_failed_s",
    help="Keep the container of a failed task for one week for debugging.",
)
RDMA: Final = Flag(
    key="paiAzRDMA",
    source=OPENPAI,
    path="roles[].resources.rdma",
    help="Give tasks access to RDMA devices.",
)
JOB_ENVS: Final = Bag(
    key="jobEnvs",
    source=f"{SCM}, {OPENPAI}",
    path="env",
    known=(IS_DEBUG, RDMA),
    help="Environment variables of the job; values are used literally, without substitution.",
)
OURS: Final = "jobConsole"
"""Where our own object stands among `extras`."""

EXTRAS: Final = Bag(
    key="extras",
    source=f"{SCM}, {OPENPAI}",
    known=(ours.group(OURS),),
    help="Other job data. Unrecognized content is ignored (kept in the file).",
)

DIRECTORIES: Final = (
    (DATA_DIR, MountPurpose.DATA),
    (OUTPUT_DIR, MountPurpose.OUTPUT),
    (CODE_DIR, MountPurpose.CODE),
)
"""What names a place, and for what."""

JOB: Final = (
    JOB_NAME,
    IMAGE,
    AUTH_FILE,
    DATA_DIR,
    OUTPUT_DIR,
    CODE_DIR,
    VIRTUAL_CLUSTER,
    RETRY_COUNT,
    TASK_ROLES,
    JOB_ENVS,
    EXTRAS,
    GPU_TYPE,
    KILL_ALL,
)
"""The keys of the whole file, in the order of the SCM page's sample."""

SNAPSHOT: Final = "tmp"
"""What SCM's form showed about the virtual group when the file was saved; it says nothing about the job."""

DEFAULT_OUTPUT: Final = "$PAI_DEFAULT_FS_URI/Output/$PAI_USER_NAME/$PAI_JOB_NAME"
"""Where output goes when nothing is said (OpenPAI v0.14; the SCM page leaves the user's name out)."""

KEEP_FAILED_S: Final = 7 * 24 * 3600
"""How long `isDebug` keeps a failed container (OpenPAI v0.14, `debugging-reservation-seconds`)."""
