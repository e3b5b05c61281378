"""Every key of an OpenPAI v2 job file: the schema of OpenPAI v1.8 and SCM's own keys beside it.

Where OpenPAI forbids further keys they are kept and noted here, but in `completion`, where a key that is
not understood would change when the job ends.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from jobs.dialects.fields import (
    CONSOLE,
    MOST_CPUS,
    MOST_GPUS,
    MOST_MEMORY_MIB,
    MOST_PORTS,
    MOST_REPLICAS,
    AnyKey,
    Bag,
    Choice,
    Counts,
    Flag,
    Group,
    Integer,
    Limit,
    Named,
    Records,
    Text,
    Texts,
)
from jobs.dialects.ours import keys as ours

OPENPAI: Final = "OpenPAI v1.8"
SCM: Final = "SCM v3.8"

MOST_ROLES: Final = 1000


def _text(key: str, help_text: str, path: str = "", *, required: bool = False, numbers: bool = False) -> Text:
    return Text(
        key=key,
        source=OPENPAI,
        path=path,
        required=required,
        blank=not required,
        numbers=numbers,
        help=help_text,
    )


PROTOCOL_VERSION: Final = Text(
    key="protocolVersion",
    source=OPENPAI,
    required=True,
    numbers=True,
    default="2",
    help="Version of the protocol: 2.",
)
NAME: Final = Text(
    key="name",
    source=OPENPAI,
    path="name",
    required=True,
    allowed=r"a-zA-Z0-9_\-",
    longest=255,
    fallback="job",
    help="Name of the job, unique among your jobs.",
)
TYPE: Final = Choice(
    key="type", source=OPENPAI, required=True, meanings={"job": ""}, help="Type of the file: job."
)
VERSION: Final = _text("version", "Version of the job file, for information only.", numbers=True)
CONTRIBUTOR: Final = _text("contributor", "Author of the job file.")
DESCRIPTION: Final = _text("description", "Description of the job.", "description")

# --- prerequisites --------------------------------------------------------------------------------------

ITEM_VERSION: Final = _text("version", "Version of the prerequisite, for templates.", numbers=True)
ITEM_NAME: Final = _text("name", "Name that task roles use to refer to it.", required=True)
ITEM_TYPE: Final = Choice(
    key="type",
    source=OPENPAI,
    required=True,
    meanings={"dockerimage": "image", "data": "data", "output": "output", "script": "code"},
    help="Type: dockerimage, data, output or script.",
)
URI: Final = Texts(
    key="uri",
    source=OPENPAI,
    path="roles[].image",
    alone=True,
    help="Address; for data, a list of addresses.",
)
USERNAME: Final = _text("username", "User name for the registry.", "registry_auth.username")
PASSWORD: Final = _text(
    "password", "Password for the registry, preferably as <% $secrets.name %>.", "registry_auth.password"
)
REGISTRY: Final = _text("registryuri", "Address of the registry.", "registry_auth.registry")
AUTH: Final = Group(
    key="auth",
    source=OPENPAI,
    path="registry_auth",
    keys=(USERNAME, PASSWORD, REGISTRY),
    help="Credentials for the registry of the image.",
)
PREREQUISITES: Final = Records(
    key="prerequisites",
    source=OPENPAI,
    path="*",
    identity="name",
    most=MOST_ROLES,
    keys=(
        replace(PROTOCOL_VERSION, required=False),
        ITEM_NAME,
        ITEM_TYPE,
        ITEM_VERSION,
        _text("contributor", "Provider of the prerequisite."),
        _text("description", "Description of the prerequisite."),
        AUTH,
        URI,
        _text("plugin", "Runtime plugin that fetches it."),
        Texts(key="require", source=OPENPAI, help="Other required prerequisites."),
    ),
    help="Images, data, scripts and outputs that task roles refer to by name.",
)
PARAMETERS: Final = Bag(
    key="parameters",
    source=f"{OPENPAI}, {SCM}",
    path="env",
    help="Values for <% $parameters.name %> in commands; in SCM, environment variables.",
)
SECRETS: Final = Bag(
    key="secrets",
    source=OPENPAI,
    path="secret_env",
    help="Secret values for <% $secrets.name %>, stored outside the file.",
)
RETRY_COUNT: Final = Integer(
    key="jobRetryCount",
    source=OPENPAI,
    path="retry.limit",
    default=0,
    least=Limit(0, OPENPAI),
    help="Number of retries for a failed job.",
)

# --- task roles -----------------------------------------------------------------------------------------

INSTANCES: Final = Integer(
    key="instances",
    source=OPENPAI,
    path="roles[].replicas",
    default=1,
    least=Limit(1, OPENPAI),
    most=Limit(MOST_REPLICAS, CONSOLE),
    help="Number of tasks in the role, at least 1.",
)
MIN_FAILED: Final = Integer(
    key="minFailedInstances",
    source=OPENPAI,
    path="roles[].completion.min_failed",
    default=1,
    nullable=True,
    help="Number of failed tasks after which the whole job fails; null or -1 for never.",
)
MIN_SUCCEEDED: Final = Integer(
    key="minSucceededInstances",
    source=OPENPAI,
    path="roles[].completion.min_succeeded",
    default=None,
    nullable=True,
    help=("Number of succeeded tasks after which the whole job completes; null or -1 to wait for all tasks."),
)
COMPLETION: Final = Group(
    key="completion",
    source=OPENPAI,
    path="roles[].completion",
    keys=(MIN_FAILED, MIN_SUCCEEDED),
    help="Completion policy: when this role decides the result of the job.",
)
TASK_RETRY_COUNT: Final = Integer(
    key="taskRetryCount",
    source=OPENPAI,
    path="roles[].restart.limit",
    default=None,
    nullable=True,
    help="Number of retries for a single failed task.",
)
DOCKER_IMAGE: Final = Text(
    key="dockerImage",
    source=OPENPAI,
    path="roles[].image",
    required=True,
    blank=True,
    help=(
        "Name of the prerequisite to use as image. If empty, no image is used (OpenPAI itself requires one)."
    ),
)
DATA: Final = _text("data", "Name of the prerequisite to use as data.", "mounts[data].uri")
OUTPUT: Final = _text("output", "Name of the prerequisite to use as output.", "mounts[output].uri")
SCRIPT: Final = _text("script", "Name of the prerequisite to use as code.", "mounts[code].uri")
SHM_MB: Final = Integer(
    key="shmMB",
    source=OPENPAI,
    path="roles[].resources.shm_mib",
    unit="MiB",
    default=512,
    floor=Limit(0, CONSOLE),
    most=Limit(MOST_MEMORY_MIB, CONSOLE),
    help="Shared memory of each task in MB. Default: 512.",
)
SCM_SHM_MB: Final = replace(SHM_MB, source=SCM, help="Shared memory of each task in MB (SCM only).")
INFINIBAND: Final = Flag(
    key="infiniband",
    source=OPENPAI,
    path="roles[].resources.rdma",
    help="Give tasks access to RDMA devices.",
)
CONTAINER: Final = Group(
    key="extraContainerOptions",
    source=OPENPAI,
    path="roles[].resources",
    keys=(SHM_MB, INFINIBAND),
    help="More container settings.",
)
CPU: Final = Integer(
    key="cpu",
    source=OPENPAI,
    path="roles[].resources.cpu_milli",
    unit="cores",
    default=1,
    required=True,
    floor=Limit(1, CONSOLE),
    most=Limit(MOST_CPUS, CONSOLE),
    help="CPU cores of each task.",
)
MEMORY_MB: Final = Integer(
    key="memoryMB",
    source=OPENPAI,
    path="roles[].resources.memory_mib",
    unit="MiB",
    default=100,
    required=True,
    floor=Limit(1, CONSOLE),
    most=Limit(MOST_MEMORY_MIB, CONSOLE),
    help="Memory of each task in MB.",
)
GPU: Final = Integer(
    key="gpu",
    source=OPENPAI,
    path="roles[].resources.gpus",
    unit="GPUs",
    default=0,
    required=True,
    floor=Limit(0, CONSOLE),
    most=Limit(MOST_GPUS, CONSOLE),
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
PORTS: Final = Counts(
    key="ports",
    source=OPENPAI,
    path="roles[].ports",
    most=MOST_ROLES,
    fallback="port",
    count=Integer(
        key="ports",
        source=OPENPAI,
        default=1,
        floor=Limit(1, OPENPAI),
        most=Limit(MOST_PORTS, CONSOLE),
        help="Number of ports with this label.",
    ),
    help="Ports of each task: number of ports per label.",
)
RESOURCES: Final = Group(
    key="resourcePerInstance",
    source=OPENPAI,
    path="roles[].resources",
    required=True,
    keys=(GPU, CPU, MEMORY_MB, STORAGE_GB, PORTS),
    help="Resources of each task.",
)
COMMANDS: Final = Texts(
    key="commands",
    source=OPENPAI,
    path="roles[].command",
    required=True,
    help=(
        "Commands of each task, run one after the other in one shell; exports at the beginning "
        "set environment variables."
    ),
)
TASK_ROLES: Final = Named(
    key="taskRoles",
    source=OPENPAI,
    path="roles",
    names="roles[].name",
    required=True,
    most=MOST_ROLES,
    keys=(
        INSTANCES,
        COMPLETION,
        TASK_RETRY_COUNT,
        DOCKER_IMAGE,
        DATA,
        OUTPUT,
        SCRIPT,
        Texts(key="prerequisites", source=OPENPAI, help="Other prerequisites of the role."),
        CONTAINER,
        SCM_SHM_MB,
        RESOURCES,
        COMMANDS,
        replace(PROTOCOL_VERSION, required=False),
    ),
    help="Task roles by name, at least one. All tasks of a role are identical.",
)

# --- deployments and defaults ---------------------------------------------------------------------------

PRE_COMMANDS: Final = Texts(
    key="preCommands",
    source=OPENPAI,
    path="roles[].env",
    help="Commands to run before the role's own; exports in them set environment variables.",
)
POST_COMMANDS: Final = Texts(
    key="postCommands", source=OPENPAI, path="roles[].command", help="Commands to run after the role's own."
)
DEPLOYMENT_NAME: Final = _text("name", "Name of the deployment.", required=True)
DEPLOYMENT_ROLES: Final = Named(
    key="taskRoles",
    source=OPENPAI,
    path="roles",
    most=MOST_ROLES,
    keys=(PRE_COMMANDS, POST_COMMANDS),
    help="Additions by task role.",
)
DEPLOYMENTS: Final = Records(
    key="deployments",
    source=OPENPAI,
    path="*",
    identity="name",
    most=MOST_ROLES,
    keys=(DEPLOYMENT_NAME, replace(VERSION, help="Version of the deployment."), DEPLOYMENT_ROLES),
    help="Deployments: commands to run before and after those of the task roles.",
)
DEPLOYMENT: Final = _text("deployment", "Deployment to use.", "roles[].command")
VIRTUAL_CLUSTER: Final = _text(
    "virtualCluster", "Virtual cluster that runs the job. If omitted, the default one.", "quota"
)
DEFAULTS: Final = Group(
    key="defaults",
    source=OPENPAI,
    path="*",
    keys=(DEPLOYMENT, VIRTUAL_CLUSTER),
    help="Defaults.",
)

# --- extras ---------------------------------------------------------------------------------------------

SKU_TYPE: Final = Text(
    key="skuType",
    source=OPENPAI,
    path="roles[].resources.gpu_type",
    aliases=("gpuType",),
    blank=True,
    help="GPU type. If omitted, any type.",
)
PRIORITY_CLASS: Final = Choice(
    key="jobPriorityClass",
    source=OPENPAI,
    path="priority",
    meanings={"crit": "9", "prod": "7", "test": "4", "oppo": "1"},
    open=True,
    help="Priority: crit, prod, test or oppo (idle resources of others).",
)
HIVED_ROLES: Final = Named(
    key="taskRoles",
    source=OPENPAI,
    path="roles",
    most=MOST_ROLES,
    keys=(
        SKU_TYPE,
        Integer(key="skuNum", source=OPENPAI, help="Number of units of this type per task."),
    ),
    help="HiveD scheduler requests by task role.",
)
HIVED: Final = Group(
    key="hivedScheduler",
    source=OPENPAI,
    path="*",
    keys=(PRIORITY_CLASS, HIVED_ROLES),
    help="Options of the HiveD scheduler.",
)
STORAGE_NAME: Final = _text("name", "Name of the storage.", "mounts[data].id", required=True)
STORAGE_PATH: Final = _text("mountPath", "Mount path. Default: /mnt/name.", "mounts[data].path")
STORAGES: Final = Records(
    key="storages",
    source=OPENPAI,
    path="mounts",
    identity="name",
    most=MOST_ROLES,
    keys=(STORAGE_NAME, STORAGE_PATH),
    help="Cluster storage visible to the tasks.",
)
PLUGIN: Final = _text(
    "plugin",
    "Name of the plugin: ssh, tensorboard, teamwise_storage, cmd …",
    "tensorboard.enabled",
    required=True,
)
LOG_DIRECTORIES: Final = Bag(
    key="logdir",
    source=OPENPAI,
    path="tensorboard.log_path",
    help="Directories to show in TensorBoard, by name; only the first one is used.",
)
STORAGE_NAMES: Final = Texts(
    key="storageConfigNames",
    source=OPENPAI,
    path="mounts[data].id",
    help="Cluster storage for the plugin teamwise_storage.",
)
PLUGINS: Final = Records(
    key="com.microsoft.pai.runtimeplugin",
    source=OPENPAI,
    path="*",
    identity="plugin",
    most=MOST_ROLES,
    keys=(
        PLUGIN,
        Texts(key="taskroles", source=OPENPAI, help="Task roles that use the plugin. If omitted, all."),
        Bag(
            key="parameters",
            source=OPENPAI,
            known=(LOG_DIRECTORIES, STORAGE_NAMES),
            help="Plugin parameters.",
        ),
        Bag(key="failurePolicy", source=OPENPAI, help="Failure policy."),
    ),
    help=("Runtime plugins. TensorBoard and storage are supported; others are ignored (kept for OpenPAI)."),
)
OURS: Final = "jobConsole"
"""What v2 has no key for is kept under this one of `extras`."""

OUR_RETRY: Final = Integer(
    key="retryCount",
    source=CONSOLE,
    path="retry",
    default=0,
    least=Limit(-2, "OpenPAI v0.14"),
    help=("Negative retryCount of protocol v1: -1 for unlimited retries, -2 to also rerun after success."),
)
OUR_KEEP: Final = Integer(
    key="keepFailedSeconds",
    source=CONSOLE,
    path="keep_failed_s",
    default=0,
    least=Limit(0, CONSOLE),
    most=Limit(10**9, CONSOLE),
    help="Time to keep a failed container (isDebug of protocol v1).",
)
OUR_AUTH_FILE: Final = _text("authFile", "authFile of protocol v1.", "registry_auth.file_uri")
OUR_BEGIN: Final = Counts(
    key="beginAt",
    source=CONSOLE,
    path="roles[].ports[].begin_at",
    most=MOST_ROLES,
    fallback="port",
    count=Integer(
        key="beginAt",
        source=CONSOLE,
        default=0,
        least=Limit(0, CONSOLE),
        most=Limit(MOST_PORTS, CONSOLE),
        help="The first port number.",
    ),
    help="beginAt of protocol v1: first port number of a label.",
)
OUR_DISK: Final = replace(
    STORAGE_GB, key="diskMB", unit="MiB", source=CONSOLE, help="Disk of each container in MB."
)
OUR_ROLES: Final = Named(
    key="taskRoles",
    source=CONSOLE,
    path="roles",
    most=MOST_ROLES,
    keys=(OUR_BEGIN, OUR_DISK),
    help="The same settings per task role.",
)
OUR_OLD_KEYS: Final = (OUR_RETRY, OUR_KEEP, OUR_AUTH_FILE, OUR_ROLES)
"""Protocol v1's own names, which are still read, and kept up to date where they are."""

EXTRAS: Final = Group(
    key="extras",
    source=OPENPAI,
    path="*",
    keys=(
        HIVED,
        STORAGES,
        PLUGINS,
        Flag(
            key="gangAllocation",
            source=OPENPAI,
            default=True,
            help="Whether all tasks must start together.",
        ),
        _text("submitFrom", "Page or tool that created the job."),
        Bag(key="jobStatusChangeNotification", source=OPENPAI, help="State changes to notify by e-mail."),
        Group(
            key=OURS,
            source=CONSOLE,
            path="*",
            keys=(*OUR_OLD_KEYS, *ours.KEYS),
            help="Console settings that v2 can't express, under the console's own names.",
        ),
    ),
    help="Other job data. Unrecognized content is ignored (kept in the file).",
)

JOB: Final[tuple[AnyKey, ...]] = (
    PROTOCOL_VERSION,
    NAME,
    TYPE,
    VERSION,
    CONTRIBUTOR,
    DESCRIPTION,
    PREREQUISITES,
    PARAMETERS,
    SECRETS,
    RETRY_COUNT,
    TASK_ROLES,
    DEPLOYMENTS,
    DEFAULTS,
    EXTRAS,
)
"""The keys of the whole file, in the order of OpenPAI's samples."""

RDMA_PARAMETER: Final = "paiAzRDMA"
DEBUG_PARAMETER: Final = "isDebug"
"""Parameters that are switches at SCM, as among jobEnvs of protocol v1."""
