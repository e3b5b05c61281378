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
    help="Name of the job, unique among your own.",
)
TYPE: Final = Choice(
    key="type", source=OPENPAI, required=True, meanings={"job": ""}, help="What the file describes: job."
)
VERSION: Final = _text("version", "Version of the job file, for people.", numbers=True)
CONTRIBUTOR: Final = _text("contributor", "Who wrote the job file.")
DESCRIPTION: Final = _text("description", "What the job is for.", "description")

# --- prerequisites --------------------------------------------------------------------------------------

ITEM_VERSION: Final = _text("version", "Version of the prerequisite, for templates.", numbers=True)
ITEM_NAME: Final = _text("name", "Name under which task roles ask for it.", required=True)
ITEM_TYPE: Final = Choice(
    key="type",
    source=OPENPAI,
    required=True,
    meanings={"dockerimage": "image", "data": "data", "output": "output", "script": "code"},
    help="What it is: dockerimage, data, output or script.",
)
URI: Final = Texts(
    key="uri",
    source=OPENPAI,
    path="roles[].image",
    alone=True,
    help="Where it is: one address, of data a list of them.",
)
USERNAME: Final = _text("username", "User name for the registry.", "registry_auth.username")
PASSWORD: Final = _text(
    "password", "Password for the registry, best as <% $secrets.name %>.", "registry_auth.password"
)
REGISTRY: Final = _text("registryuri", "Address of the registry.", "registry_auth.registry")
AUTH: Final = Group(
    key="auth",
    source=OPENPAI,
    path="registry_auth",
    keys=(USERNAME, PASSWORD, REGISTRY),
    help="Login for the registry of the image.",
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
        _text("contributor", "Who provides the prerequisite."),
        _text("description", "What the prerequisite is."),
        AUTH,
        URI,
        _text("plugin", "Runtime plugin that fetches it."),
        Texts(key="require", source=OPENPAI, help="Other prerequisites that it needs."),
    ),
    help="Images, data, scripts and outputs that the task roles ask for by name.",
)
PARAMETERS: Final = Bag(
    key="parameters",
    source=f"{OPENPAI}, {SCM}",
    path="env",
    help="Values for <% $parameters.name %> in commands; at SCM they are environment variables.",
)
SECRETS: Final = Bag(
    key="secrets",
    source=OPENPAI,
    path="secret_env",
    help="Secret values for <% $secrets.name %>; they are kept outside of the file.",
)
RETRY_COUNT: Final = Integer(
    key="jobRetryCount",
    source=OPENPAI,
    path="retry.limit",
    default=0,
    least=Limit(0, OPENPAI),
    help="How often a failed job is tried again.",
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
    help="Number of failed tasks that fails the whole job; with null or -1 failed tasks never do.",
)
MIN_SUCCEEDED: Final = Integer(
    key="minSucceededInstances",
    source=OPENPAI,
    path="roles[].completion.min_succeeded",
    default=None,
    nullable=True,
    help="Number of succeeded tasks that completes the whole job; with null or -1 all have to end.",
)
COMPLETION: Final = Group(
    key="completion",
    source=OPENPAI,
    path="roles[].completion",
    keys=(MIN_FAILED, MIN_SUCCEEDED),
    help="When this role decides the whole job.",
)
TASK_RETRY_COUNT: Final = Integer(
    key="taskRetryCount", source=OPENPAI, default=0, help="How often a failed task alone is tried again."
)
DOCKER_IMAGE: Final = Text(
    key="dockerImage",
    source=OPENPAI,
    path="roles[].image",
    required=True,
    blank=True,
    help="Name of the prerequisite that is the image; empty for none, which OpenPAI itself does not take.",
)
DATA: Final = _text("data", "Name of the prerequisite that is the data.", "mounts[data].uri")
OUTPUT: Final = _text("output", "Name of the prerequisite that is the output.", "mounts[output].uri")
SCRIPT: Final = _text("script", "Name of the prerequisite that is the code.", "mounts[code].uri")
SHM_MB: Final = Integer(
    key="shmMB",
    source=OPENPAI,
    path="roles[].resources.shm_mib",
    unit="MiB",
    default=512,
    floor=Limit(0, CONSOLE),
    most=Limit(MOST_MEMORY_MIB, CONSOLE),
    help="Shared memory of each task in MB; 512 when left out.",
)
SCM_SHM_MB: Final = replace(SHM_MB, source=SCM, help="Shared memory of each task in MB (SCM only).")
INFINIBAND: Final = Flag(
    key="infiniband",
    source=OPENPAI,
    path="roles[].resources.rdma",
    help="Give the tasks the devices for RDMA.",
)
CONTAINER: Final = Group(
    key="extraContainerOptions",
    source=OPENPAI,
    path="roles[].resources",
    keys=(SHM_MB, INFINIBAND),
    help="More about the containers.",
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
        help="How many ports of this label.",
    ),
    help="Ports that each task needs: how many under each label.",
)
RESOURCES: Final = Group(
    key="resourcePerInstance",
    source=OPENPAI,
    path="roles[].resources",
    required=True,
    keys=(GPU, CPU, MEMORY_MB, STORAGE_GB, PORTS),
    help="What each task is given.",
)
COMMANDS: Final = Texts(
    key="commands",
    source=OPENPAI,
    path="roles[].command",
    required=True,
    help="The commands of each task, one after the other in one shell; exports at the beginning are its "
    "environment.",
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
        Texts(key="prerequisites", source=OPENPAI, help="Further prerequisites of the role."),
        CONTAINER,
        SCM_SHM_MB,
        RESOURCES,
        COMMANDS,
        replace(PROTOCOL_VERSION, required=False),
    ),
    help="The task roles by name, at least one; the tasks of a role are equal.",
)

# --- deployments and defaults ---------------------------------------------------------------------------

PRE_COMMANDS: Final = Texts(
    key="preCommands",
    source=OPENPAI,
    path="roles[].env",
    help="Commands before the role's own; exports among them are its environment.",
)
POST_COMMANDS: Final = Texts(
    key="postCommands", source=OPENPAI, path="roles[].command", help="Commands after the role's own."
)
DEPLOYMENT_NAME: Final = _text("name", "Name of the deployment.", required=True)
DEPLOYMENT_ROLES: Final = Named(
    key="taskRoles",
    source=OPENPAI,
    path="roles",
    most=MOST_ROLES,
    keys=(PRE_COMMANDS, POST_COMMANDS),
    help="What it adds to which task role.",
)
DEPLOYMENTS: Final = Records(
    key="deployments",
    source=OPENPAI,
    path="*",
    identity="name",
    most=MOST_ROLES,
    keys=(DEPLOYMENT_NAME, replace(VERSION, help="Version of the deployment."), DEPLOYMENT_ROLES),
    help="Ways of running the job: commands before and after those of the task roles.",
)
DEPLOYMENT: Final = _text("deployment", "The deployment that is used.", "roles[].command")
VIRTUAL_CLUSTER: Final = _text(
    "virtualCluster", "The virtual cluster that the job runs on; the default one when left out.", "quota"
)
DEFAULTS: Final = Group(
    key="defaults",
    source=OPENPAI,
    path="*",
    keys=(DEPLOYMENT, VIRTUAL_CLUSTER),
    help="What is used when nothing else is said.",
)

# --- extras ---------------------------------------------------------------------------------------------

SKU_TYPE: Final = Text(
    key="skuType",
    source=OPENPAI,
    path="roles[].resources.gpu_type",
    aliases=("gpuType",),
    blank=True,
    help="Type of the GPUs; any type when left out.",
)
PRIORITY_CLASS: Final = Choice(
    key="jobPriorityClass",
    source=OPENPAI,
    path="priority",
    meanings={"crit": "9", "prod": "7", "test": "4", "oppo": "1"},
    open=True,
    help="Priority: crit, prod, test or oppo (what others leave idle).",
)
HIVED_ROLES: Final = Named(
    key="taskRoles",
    source=OPENPAI,
    path="roles",
    most=MOST_ROLES,
    keys=(
        SKU_TYPE,
        Integer(key="skuNum", source=OPENPAI, help="How many units of that type each task gets."),
    ),
    help="What each task role asks of the HiveD scheduler.",
)
HIVED: Final = Group(
    key="hivedScheduler",
    source=OPENPAI,
    path="*",
    keys=(PRIORITY_CLASS, HIVED_ROLES),
    help="Options of the HiveD scheduler.",
)
STORAGE_NAME: Final = _text("name", "Name of the storage.", "mounts[data].id", required=True)
STORAGE_PATH: Final = _text("mountPath", "Where it is mounted; /mnt/name when left out.", "mounts[data].path")
STORAGES: Final = Records(
    key="storages",
    source=OPENPAI,
    path="mounts",
    identity="name",
    most=MOST_ROLES,
    keys=(STORAGE_NAME, STORAGE_PATH),
    help="Storages of the cluster that the tasks see.",
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
    help="What TensorBoard shows: directories by name; the first one is taken.",
)
STORAGE_NAMES: Final = Texts(
    key="storageConfigNames",
    source=OPENPAI,
    path="mounts[data].id",
    help="Storages of the cluster for the plugin teamwise_storage.",
)
PLUGINS: Final = Records(
    key="com.microsoft.pai.runtimeplugin",
    source=OPENPAI,
    path="*",
    identity="plugin",
    most=MOST_ROLES,
    keys=(
        PLUGIN,
        Texts(key="taskroles", source=OPENPAI, help="The task roles that it is for; all when left out."),
        Bag(
            key="parameters",
            source=OPENPAI,
            known=(LOG_DIRECTORIES, STORAGE_NAMES),
            help="What the plugin is told.",
        ),
        Bag(key="failurePolicy", source=OPENPAI, help="What happens when it fails."),
    ),
    help="Runtime plugins; TensorBoard and storages are understood, the others are kept for OpenPAI.",
)
OURS: Final = "jobConsole"
"""What v2 has no key for is kept under this one of `extras`."""

OUR_RETRY: Final = Integer(
    key="retryCount",
    source=CONSOLE,
    path="retry",
    default=0,
    least=Limit(-2, "OpenPAI v0.14"),
    help="Protocol v1's retryCount below 0: -1 retries without end, -2 also after success.",
)
OUR_KEEP: Final = Integer(
    key="keepFailedSeconds",
    source=CONSOLE,
    path="keep_failed_s",
    default=0,
    least=Limit(0, CONSOLE),
    most=Limit(10**9, CONSOLE),
    help="How long a failed container is kept (protocol v1's isDebug).",
)
OUR_AUTH_FILE: Final = _text("authFile", "Protocol v1's authFile.", "registry_auth.file_uri")
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
    help="Protocol v1's beginAt: the first number of the ports under a label.",
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
    help="The same for each task role.",
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
            help="Whether all tasks have to start together.",
        ),
        _text("submitFrom", "The page or tool that the job came from."),
        Bag(
            key="jobStatusChangeNotification", source=OPENPAI, help="Changes of state that are told by mail."
        ),
        Group(
            key=OURS,
            source=CONSOLE,
            path="*",
            keys=(*OUR_OLD_KEYS, *ours.KEYS),
            help="What v2 has no key for and the console knows, in the console's own names.",
        ),
    ),
    help="Whatever else belongs to the job; what is not understood is kept, and not used.",
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
