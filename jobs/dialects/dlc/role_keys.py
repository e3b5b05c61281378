"""Keys of one element of DLC's `JobSpecs`, a role, and rules for keys that are kept for DLC alone.

None of the latter is ever executed here: side containers, init containers and hooks run only where DLC runs.
"""

from __future__ import annotations

from typing import Final

from jobs.dialects.dlc import limits
from jobs.dialects.dlc.limits import PAGE, SDK_17, SDK_NEW
from jobs.dialects.fields import (
    CONSOLE,
    MOST_CPUS,
    MOST_GPUS,
    MOST_MEMORY_MIB,
    MOST_PORTS,
    MOST_REPLICAS,
    Amount,
    AnyKey,
    Bag,
    Choice,
    Flag,
    Fraction,
    Group,
    Integer,
    Limit,
    Quantity,
    Records,
    Text,
    Texts,
)
from jobs.spec import Resources

MOST: Final = 1000


def stored_text(key: str, help_text: str, source: str = SDK_NEW) -> Text:
    """A string that only DLC understands."""
    return Text(key=key, source=source, help=help_text, blank=True)


def stored_flag(key: str, help_text: str, source: str = SDK_NEW) -> Flag:
    """True or false, for DLC only."""
    return Flag(key=key, source=source, help=help_text)


def stored_count(key: str, help_text: str, source: str = SDK_NEW) -> Integer:
    """A number that only DLC understands."""
    return Integer(key=key, source=source, help=help_text, most=Limit(2**31, CONSOLE))


def _texts(key: str, help_text: str, source: str) -> Texts:
    return Texts(key=key, source=source, help=help_text)


def _group(key: str, help_text: str, keys: tuple[AnyKey, ...], source: str = SDK_NEW) -> Group:
    return Group(key=key, source=source, help=help_text, keys=keys)


SECURITY_CONTEXT_KEYS: Final = (
    _group(
        "Capabilities",
        "Linux capabilities to add and to drop.",
        (_texts("Add", "Capabilities to add.", SDK_NEW), _texts("Drop", "Capabilities to drop.", SDK_NEW)),
    ),
    stored_flag("Privileged", "Run with all rights on the node."),
    stored_count("RunAsUser", "User id."),
    stored_count("RunAsGroup", "Group id."),
    _group(
        "SeccompProfile",
        "System calls that are allowed.",
        (stored_text("Type", "Kind of profile."), stored_text("LocalhostProfile", "Path of a profile.")),
    ),
)


def _containers(key: str, help_text: str) -> Records:
    return Records(
        key=key,
        source=PAGE,
        keys=(
            stored_text("Name", "Name of the container.", PAGE),
            stored_text("Image", "Image of the container.", PAGE),
            _texts("Command", "Its command, in words.", PAGE),
            _texts("Args", "Arguments of the command.", PAGE),
            stored_text("WorkingDir", "Where the command starts.", PAGE),
            Records(
                key="Env",
                source=PAGE,
                keys=(
                    stored_text("Name", "Name of the variable.", PAGE),
                    stored_text("Value", "Value of the variable.", PAGE),
                ),
                identity="Name",
                most=MOST,
                help="Environment variables of this container.",
            ),
            _group(
                "Resources",
                "What the container is given.",
                (
                    Bag(key="Limits", source=SDK_17, help="At most."),
                    Bag(key="Requests", source=SDK_17, help="At least."),
                ),
                PAGE,
            ),
            _group("SecurityContext", "Rights of the container.", SECURITY_CONTEXT_KEYS),
        ),
        identity="Name",
        most=MOST,
        help=help_text,
    )


def _hook(key: str, help_text: str) -> Group:
    command = _texts("Command", "The command, in words.", SDK_17)
    return _group(key, help_text, (_group("Exec", "A command to run.", (command,), SDK_17),), SDK_17)


EXTRA_POD_SPEC: Final = _group(
    "ExtraPodSpec",
    "Containers and volumes beside the main container; kept for DLC.",
    (
        _containers("InitContainers", "Containers that run before the main one."),
        _containers("SideCarContainers", "Containers that run beside the main one."),
        _texts("SharedVolumeMountPaths", "Paths that all containers of a node share.", PAGE),
        Bag(key="PodAnnotations", source=PAGE, help="Annotations of the pods."),
        Bag(key="PodLabels", source=PAGE, help="Labels of the pods."),
        _group(
            "Lifecycle",
            "Commands at the start and before the end.",
            (_hook("PostStart", "After the start."), _hook("PreStop", "Before the end.")),
            SDK_17,
        ),
        _group("MainContainerSecurityContext", "Rights of the main container.", SECURITY_CONTEXT_KEYS),
    ),
    PAGE,
)

AUTO_SCALING_SPEC: Final = _group(
    "AutoScalingSpec",
    "Numbers of replicas between which DLC scales.",
    (
        stored_count("MinReplicas", "At least."),
        stored_count("MaxReplicas", "At most."),
        stored_text("ScalingStrategy", "How it scales."),
        _texts("PodsToDelete", "Pods to go first.", SDK_NEW),
        _group(
            "AutoscalingMetricSpec",
            "What decides.",
            (
                stored_text("MetricName", "The metric."),
                Fraction(key="TargetValue", source=SDK_NEW, help="Its value to aim at."),
                stored_text("Tolerance", "How far from the target the metric may be."),
                stored_count("StabilizationWindowSeconds", "How long to wait, in seconds."),
            ),
        ),
    ),
)

ELASTIC_SPOT_SPECS: Final = Records(
    key="ElasticSpotSpecs",
    source=SDK_NEW,
    keys=(
        stored_text("InstanceType", "The instance type."),
        stored_text("SpotStrategy", "How to bid."),
        Fraction(key="SpotDiscountLimit", source=SDK_NEW, help="Part of the market price."),
        Fraction(key="SpotPriceLimit", source=SDK_NEW, help="Price an hour."),
    ),
    identity="InstanceType",
    most=MOST,
    help="Sizes to fall back to, each with its bid.",
)

HYPER_NODE_SCHEDULING_CONFIG: Final = _group(
    "HyperNodeSchedulingConfig",
    "How nodes are taken from hyper nodes.",
    (
        stored_count("MinAvailable", "At least so many nodes."),
        stored_text("QualityPolicy", "Which to prefer."),
    ),
)

LOCAL_MOUNT_SPECS: Final = Records(
    key="LocalMountSpecs",
    source=SDK_NEW,
    keys=(
        stored_text("LocalPath", "Path on the node."),
        stored_text("MountMode", "How it is mounted."),
        stored_text("MountPath", "Path in the container."),
    ),
    identity="MountPath",
    most=MOST,
    help="Directories of the nodes; kept for DLC.",
)

STARTUP_DEPENDENCIES: Final = Records(
    key="StartupDependencies",
    source=SDK_NEW,
    keys=(
        stored_text("Type", "The role to wait for."),
        stored_text("OnPhase", "The phase of that role that is waited for."),
        stored_text("MinReplicas", "How many replicas of that role."),
    ),
    identity="Type",
    most=MOST,
    help="Roles that have to be there first.",
)

RESTART_POLICY: Final = Choice(
    key="RestartPolicy",
    source=SDK_NEW,
    meanings={"Always": "", "Never": "", "OnFailure": "", "ExitCode": ""},
    help="When DLC starts a container of this role again.",
)


# --- a role ----------------------------------------------------------------------------------------------


DEFAULTS: Final = Resources()

TYPE: Final = Text(
    key="Type",
    source=PAGE,
    path="roles[].name",
    required=True,
    longest=255,
    help="The role: Worker, Master, PS, Chief, Evaluator, GraphLearn, Head, as the job type knows it.",
)
IMAGE: Final = Text(
    key="Image",
    source=PAGE,
    path="roles[].image",
    blank=True,
    help="Address of the image, public or in ACR.",
)
POD_COUNT: Final = Integer(
    key="PodCount",
    source=PAGE,
    path="roles[].replicas",
    default=1,
    least=Limit(1, CONSOLE),
    most=Limit(MOST_REPLICAS, CONSOLE),
    expected=PAGE,
    help="How many nodes of this role.",
)
ECS_SPEC: Final = Text(
    key="EcsSpec",
    source=PAGE,
    path="roles[].resources.instance_type",
    blank=True,
    help="A ready-made size, on public resources; or else ResourceConfig.",
)
USER_COMMAND: Final = Text(
    key="UserCommand",
    source=SDK_NEW,
    path="roles[].command",
    blank=True,
    help="A command of this role's own.",
)

DOCKER_REGISTRY: Final = Text(
    key="DockerRegistry",
    source=PAGE,
    path="registry_auth.registry",
    blank=True,
    help="The registry to log in to.",
)
USERNAME: Final = Text(
    key="Username",
    source=PAGE,
    path="registry_auth.username",
    blank=True,
    help="User name for the image registry.",
)
PASSWORD: Final = Text(
    key="Password",
    source=PAGE,
    path="registry_auth.password",
    blank=True,
    help="Password for the image registry.",
)
IMAGE_CONFIG: Final = Group(
    key="ImageConfig",
    source=PAGE,
    path="*",
    keys=(
        DOCKER_REGISTRY,
        USERNAME,
        PASSWORD,
        stored_text("Auth", "User name and password in one.", PAGE),
    ),
    help="Login for a private image.",
)

CPU: Final = Amount(
    key="CPU",
    source=PAGE,
    path="roles[].resources.cpu_milli",
    quantity=Quantity.CPU,
    default=DEFAULTS.cpu_milli,
    least=Limit(1, CONSOLE),
    most=Limit(MOST_CPUS * 1000, CONSOLE),
    expected=PAGE,
    help="CPU cores of each node.",
)
GPU: Final = Amount(
    key="GPU",
    source=PAGE,
    path="roles[].resources.gpus",
    quantity=Quantity.COUNT,
    default=0,
    most=Limit(MOST_GPUS, CONSOLE),
    help="GPUs of each node.",
)
GPU_TYPE: Final = Text(
    key="GPUType",
    source=PAGE,
    path="roles[].resources.gpu_type",
    blank=True,
    help="Type of the GPUs; any when left out.",
)
MEMORY: Final = Amount(
    key="Memory",
    source=PAGE,
    path="roles[].resources.memory_mib",
    quantity=Quantity.MEMORY,
    default=DEFAULTS.memory_mib,
    least=Limit(1, CONSOLE),
    most=Limit(MOST_MEMORY_MIB, CONSOLE),
    expected=PAGE,
    help='Memory of each node, "16Gi".',
)
SHARED_MEMORY: Final = Amount(
    key="SharedMemory",
    source=PAGE,
    path="roles[].resources.shm_mib",
    quantity=Quantity.MEMORY,
    default=DEFAULTS.shm_mib,
    most=Limit(MOST_MEMORY_MIB, CONSOLE),
    help='Shared memory of each node, "4Gi".',
)
RESOURCE_CONFIG: Final = Group(
    key="ResourceConfig",
    source=PAGE,
    path="*",
    keys=(CPU, GPU, GPU_TYPE, MEMORY, SHARED_MEMORY),
    help="What each node is given, out of a resource quota; or else EcsSpec.",
)
DISK_SIZE: Final = Integer(
    key="Size",
    source=SDK_NEW,
    path="roles[].resources.disk_mib",
    unit="GiB",
    default=0,
    least=Limit(0, CONSOLE),
    most=Limit(MOST_MEMORY_MIB // 1024, CONSOLE),
    help="Size of each node's system disk in GiB.",
)
SYSTEM_DISK: Final = Group(
    key="SystemDisk",
    source=SDK_NEW,
    path="*",
    keys=(
        stored_text("Category", "Kind of disk."),
        stored_text("PerformanceLevel", "Its performance level."),
        DISK_SIZE,
    ),
    help="The system disk of each node.",
)

USE_SPOT: Final = Flag(
    key="UseSpotInstance",
    source=PAGE,
    path="roles[].bid",
    help="Use preemptible machines at whatever they cost.",
)
SPOT_STRATEGY: Final = Choice(
    key="SpotStrategy",
    source=PAGE,
    path="roles[].bid",
    meanings={"SpotWithPriceLimit": "limit"},
    open=True,
    help="SpotWithPriceLimit: bid with one of the two limits.",
)
SPOT_DISCOUNT: Final = Fraction(
    key="SpotDiscountLimit",
    source=PAGE,
    path="roles[].bid.discount_percent",
    least=limits.DISCOUNT_LEAST,
    most=limits.DISCOUNT_MOST,
    help="Highest bid as part of the market price, 0.1 to 0.9 (Lingjun only).",
)
SPOT_PRICE: Final = Fraction(
    key="SpotPriceLimit",
    source=PAGE,
    path="roles[].bid.price_micro",
    least=("0.000001", CONSOLE),
    most=("1000000", CONSOLE),
    help="Highest bid as a price an hour.",
)
SPOT_SPEC: Final = Group(
    key="SpotSpec",
    source=SDK_17,
    path="*",
    keys=(SPOT_STRATEGY, SPOT_DISCOUNT, SPOT_PRICE),
    help="Preemptible machines, by discount or by price.",
)

ENABLE_ASSIGN_NODE: Final = Flag(
    key="EnableAssignNode", source=SDK_17, path="roles[].nodes", help="Whether the names below count."
)
NODE_NAMES: Final = Text(
    key="NodeNames",
    source=SDK_17,
    path="roles[].nodes.only",
    blank=True,
    help="Nodes to run on, with commas between.",
)
ANTI_AFFINITY_NODE_NAMES: Final = Text(
    key="AntiAffinityNodeNames",
    source=SDK_17,
    path="roles[].nodes.never",
    blank=True,
    help="Nodes to keep away from, with commas between.",
)
_HYPER_NODE = (
    stored_text("HyperNodeName", "The hyper node."),
    stored_text("NodeNames", "Nodes of it."),
)
ASSIGN_NODE_SPEC: Final = Group(
    key="AssignNodeSpec",
    source=SDK_17,
    path="*",
    keys=(
        ENABLE_ASSIGN_NODE,
        NODE_NAMES,
        ANTI_AFFINITY_NODE_NAMES,
        Records(
            key="HyperNodes",
            source=SDK_NEW,
            keys=_HYPER_NODE,
            identity="HyperNodeName",
            most=MOST,
            help="Hyper nodes to run on; kept for DLC.",
        ),
        Records(
            key="AntiAffinityHyperNodes",
            source=SDK_NEW,
            keys=_HYPER_NODE,
            identity="HyperNodeName",
            most=MOST,
            help="Hyper nodes to keep away from; kept for DLC.",
        ),
    ),
    help="Nodes by name, within a resource quota.",
)

DEFAULT_PORT: Final = Integer(
    key="DefaultPort",
    source=SDK_NEW,
    path="roles[].ports",
    least=Limit(1, CONSOLE),
    most=Limit(MOST_PORTS, CONSOLE),
    help="The port of the role's service.",
)
EXTRA_PORTS: Final = Texts(
    key="ExtraPorts",
    source=SDK_NEW,
    path="roles[].ports",
    items="integer",
    help="Further ports of the service.",
)
SERVICE_SPEC: Final = Group(
    key="ServiceSpec",
    source=SDK_NEW,
    path="*",
    keys=(
        DEFAULT_PORT,
        EXTRA_PORTS,
        Choice(
            key="ServiceMode",
            source=SDK_NEW,
            meanings={"PerRole": "", "PerPod": ""},
            help="One service for the role, or one for each of its pods (default).",
        ),
    ),
    help="Ports under which the role's nodes are found.",
)

CONSIDERED: Final = Flag(
    key="ConsiderInSuccessPolicy",
    source=SDK_NEW,
    path="roles[].completion",
    help="Only roles with this decide whether the job has succeeded.",
)
IS_CHIEF: Final = Flag(
    key="IsChief",
    source=SDK_NEW,
    path="roles[].completion",
    aliases=("IsCheif",),
    help="This role decides whether the job has succeeded; only one can.",
)

ROLE: Final = (
    TYPE,
    IMAGE,
    IMAGE_CONFIG,
    POD_COUNT,
    ECS_SPEC,
    RESOURCE_CONFIG,
    SYSTEM_DISK,
    USE_SPOT,
    SPOT_SPEC,
    ASSIGN_NODE_SPEC,
    SERVICE_SPEC,
    CONSIDERED,
    IS_CHIEF,
    USER_COMMAND,
    EXTRA_POD_SPEC,
    AUTO_SCALING_SPEC,
    stored_text("Driver", "Version of the GPU driver."),
    ELASTIC_SPOT_SPECS,
    HYPER_NODE_SCHEDULING_CONFIG,
    LOCAL_MOUNT_SPECS,
    stored_text("OversoldType", "Idle resources for this role."),
    stored_text("QuotaId", "A quota of this role's own."),
    RESTART_POLICY,
    STARTUP_DEPENDENCIES,
)
"""The keys of a role, in the order in which they are written."""
