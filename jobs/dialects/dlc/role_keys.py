"""Keys of one element of DLC's `JobSpecs`, a role, and rules for keys that are kept for DLC alone.

None of the latter is ever executed here: hooks, say, run only where DLC runs.
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

CONTAINER_ENV: Final = "Env"
"""The key of a container's environment variables."""


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
    stored_flag("Privileged", "Run privileged on the node."),
    stored_count("RunAsUser", "User ID."),
    stored_count("RunAsGroup", "Group ID."),
    _group(
        "SeccompProfile",
        "Allowed system calls.",
        (stored_text("Type", "Profile type."), stored_text("LocalhostProfile", "Path of the profile.")),
    ),
)


def _containers(key: str, path: str, help_text: str) -> Records:
    """Return the key of a list of containers, which the field of a role at `path` holds."""

    def words(name: str, member: str, about: str) -> Texts:
        return Texts(key=name, source=PAGE, path=f"{path}[].{member}", help=about)

    def text(name: str, member: str, about: str) -> Text:
        return Text(key=name, source=PAGE, path=f"{path}[].{member}", help=about, blank=True)

    variable = (text("Name", "env", "Name of the variable."), text("Value", "env", "Value of the variable."))
    return Records(
        key=key,
        source=PAGE,
        path=path,
        keys=(
            text("Name", "name", "Name of the container."),
            text("Image", "image", "Image of the container. If omitted, the main one's."),
            words("Command", "command", "Command, as a list of words. If omitted, the image's."),
            words("Args", "args", "Arguments of the command."),
            text("WorkingDir", "working_dir", "Working directory of the command."),
            Records(
                key=CONTAINER_ENV,
                source=PAGE,
                path=f"{path}[].env",
                partial=True,
                keys=variable,
                identity="Name",
                most=MOST,
                help="Environment variables of this container.",
            ),
            _group(
                "Resources",
                "Resources of the container.",
                (
                    Bag(key="Limits", source=SDK_17, help="Maximum."),
                    Bag(key="Requests", source=SDK_17, help="Minimum."),
                ),
                PAGE,
            ),
            _group("SecurityContext", "Security settings of the container.", SECURITY_CONTEXT_KEYS),
        ),
        identity="Name",
        most=MOST,
        help=help_text,
    )


def split_container_keys(rule: Records) -> tuple[list[Text | Texts], Records]:
    """Return the keys of a container that fill one field of its own each, and that of its variables."""
    simple = [key for key in rule.keys if isinstance(key, (Text, Texts))]
    return simple, next(key for key in rule.keys if isinstance(key, Records))


def _hook(key: str, help_text: str) -> Group:
    command = _texts("Command", "Command to run, as a list of words.", SDK_17)
    return _group(key, help_text, (_group("Exec", "A command to run.", (command,), SDK_17),), SDK_17)


INIT_CONTAINERS: Final = _containers(
    "InitContainers", "roles[].init_containers", "Containers that run before the main one, in their order."
)
SIDECARS: Final = _containers(
    "SideCarContainers", "roles[].sidecars", "Containers that run beside the main one."
)
SHARED_PATHS: Final = Texts(
    key="SharedVolumeMountPaths",
    source=PAGE,
    path="roles[].shared_paths",
    help="Paths shared by all containers of a node.",
)
EXTRA_POD_SPEC: Final = Group(
    key="ExtraPodSpec",
    source=PAGE,
    path="*",
    help="Init containers, sidecar containers and the volumes that they share.",
    keys=(
        INIT_CONTAINERS,
        SIDECARS,
        SHARED_PATHS,
        Bag(key="PodAnnotations", source=PAGE, help="Annotations of the pods."),
        Bag(key="PodLabels", source=PAGE, help="Labels of the pods."),
        _group(
            "Lifecycle",
            "Commands at the start and before the end.",
            (_hook("PostStart", "After the start."), _hook("PreStop", "Before the end.")),
            SDK_17,
        ),
        _group(
            "MainContainerSecurityContext", "Security settings of the main container.", SECURITY_CONTEXT_KEYS
        ),
    ),
)

MIN_REPLICAS: Final = Integer(
    key="MinReplicas",
    source=SDK_NEW,
    path="roles[].completion",
    partial=True,
    most=Limit(2**31, CONSOLE),
    help="Number of replicas with which an ElasticBatchJob goes on.",
)
AUTO_SCALING_SPEC: Final = Group(
    key="AutoScalingSpec",
    source=SDK_NEW,
    path="*",
    help="Minimum and maximum number of replicas for DLC's autoscaling.",
    keys=(
        MIN_REPLICAS,
        stored_count("MaxReplicas", "Maximum."),
        stored_text("ScalingStrategy", "Scaling strategy."),
        _texts("PodsToDelete", "Pods to remove first.", SDK_NEW),
        _group(
            "AutoscalingMetricSpec",
            "Scaling metrics.",
            (
                stored_text("MetricName", "Metric."),
                Fraction(key="TargetValue", source=SDK_NEW, help="Target value of the metric."),
                stored_text("Tolerance", "Allowed deviation from the target."),
                stored_count("StabilizationWindowSeconds", "Waiting time in seconds."),
            ),
        ),
    ),
)

ELASTIC_SPOT_SPECS: Final = Records(
    key="ElasticSpotSpecs",
    source=SDK_NEW,
    keys=(
        stored_text("InstanceType", "Instance type."),
        stored_text("SpotStrategy", "Bidding strategy."),
        Fraction(key="SpotDiscountLimit", source=SDK_NEW, help="Fraction of the market price."),
        Fraction(key="SpotPriceLimit", source=SDK_NEW, help="Price per hour."),
    ),
    identity="InstanceType",
    most=MOST,
    help="Fallback sizes, each with a bid.",
)

HYPER_NODE_SCHEDULING_CONFIG: Final = _group(
    "HyperNodeSchedulingConfig",
    "How nodes are selected from hyper nodes.",
    (
        stored_count("MinAvailable", "Minimum number of nodes."),
        stored_text("QualityPolicy", "Preferred nodes."),
    ),
)

LOCAL_MOUNT_SPECS: Final = Records(
    key="LocalMountSpecs",
    source=SDK_NEW,
    keys=(
        stored_text("LocalPath", "Path on the node."),
        stored_text("MountMode", "Mount mode."),
        stored_text("MountPath", "Path in the container."),
    ),
    identity="MountPath",
    most=MOST,
    help="Node directories (ignored here, kept for DLC).",
)

STARTUP_DEPENDENCIES: Final = Records(
    key="StartupDependencies",
    source=SDK_NEW,
    keys=(
        stored_text("Type", "Role to wait for."),
        stored_text("OnPhase", "Phase of that role to wait for."),
        stored_text("MinReplicas", "Number of replicas of that role."),
    ),
    identity="Type",
    most=MOST,
    help="Roles that must start first.",
)

RESTART_POLICY: Final = Choice(
    key="RestartPolicy",
    source=SDK_NEW,
    meanings={"Always": "", "Never": "", "OnFailure": "", "ExitCode": ""},
    help="Restart policy of the role's containers in DLC.",
)


# --- a role ----------------------------------------------------------------------------------------------


DEFAULTS: Final = Resources()

TYPE: Final = Text(
    key="Type",
    source=PAGE,
    path="roles[].name",
    required=True,
    longest=255,
    help=("Role: Worker, Master, PS, Chief, Evaluator, GraphLearn or Head, depending on the job type."),
)
IMAGE: Final = Text(
    key="Image",
    source=PAGE,
    path="roles[].image",
    blank=True,
    help="Image address, public or in ACR.",
)
POD_COUNT: Final = Integer(
    key="PodCount",
    source=PAGE,
    path="roles[].replicas",
    default=1,
    least=Limit(1, CONSOLE),
    most=Limit(MOST_REPLICAS, CONSOLE),
    expected=PAGE,
    help="Number of nodes of this role.",
)
ECS_SPEC: Final = Text(
    key="EcsSpec",
    source=PAGE,
    path="roles[].resources.instance_type",
    blank=True,
    help="Predefined size, for public resources. Alternative: ResourceConfig.",
)
USER_COMMAND: Final = Text(
    key="UserCommand",
    source=SDK_NEW,
    path="roles[].command",
    blank=True,
    help="Command for this role only.",
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
        stored_text("Auth", "User name and password combined.", PAGE),
    ),
    help="Credentials for a private image.",
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
    help="GPU type; any if omitted.",
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
    help='Memory of each node, e.g. "16Gi".',
)
SHARED_MEMORY: Final = Amount(
    key="SharedMemory",
    source=PAGE,
    path="roles[].resources.shm_mib",
    quantity=Quantity.MEMORY,
    default=DEFAULTS.shm_mib,
    most=Limit(MOST_MEMORY_MIB, CONSOLE),
    help='Shared memory of each node, e.g. "4Gi".',
)
RESOURCE_CONFIG: Final = Group(
    key="ResourceConfig",
    source=PAGE,
    path="*",
    keys=(CPU, GPU, GPU_TYPE, MEMORY, SHARED_MEMORY),
    help="Resources of each node, from a resource quota. Alternative: EcsSpec.",
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
        stored_text("Category", "Disk type."),
        stored_text("PerformanceLevel", "Disk performance level."),
        DISK_SIZE,
    ),
    help="System disk of each node.",
)

USE_SPOT: Final = Flag(
    key="UseSpotInstance",
    source=PAGE,
    path="roles[].bid",
    help="Use preemptible machines at any price.",
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
    help="Maximum bid as a fraction of the market price, 0.1 to 0.9 (Lingjun only).",
)
SPOT_PRICE: Final = Fraction(
    key="SpotPriceLimit",
    source=PAGE,
    path="roles[].bid.price_micro",
    least=("0.000001", CONSOLE),
    most=("1000000", CONSOLE),
    help="Maximum bid as a price per hour.",
)
SPOT_SPEC: Final = Group(
    key="SpotSpec",
    source=SDK_17,
    path="*",
    keys=(SPOT_STRATEGY, SPOT_DISCOUNT, SPOT_PRICE),
    help="Preemptible machines, by discount or by price.",
)

ENABLE_ASSIGN_NODE: Final = Flag(
    key="EnableAssignNode", source=SDK_17, path="roles[].nodes", help="Whether the node names below are used."
)
NODE_NAMES: Final = Text(
    key="NodeNames",
    source=SDK_17,
    path="roles[].nodes.only",
    blank=True,
    help="Nodes to run on, comma-separated.",
)
ANTI_AFFINITY_NODE_NAMES: Final = Text(
    key="AntiAffinityNodeNames",
    source=SDK_17,
    path="roles[].nodes.never",
    blank=True,
    help="Nodes to exclude, comma-separated.",
)
_HYPER_NODE = (
    stored_text("HyperNodeName", "Name of the hyper node."),
    stored_text("NodeNames", "Nodes of the hyper node."),
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
            help="Hyper nodes to run on (ignored here, kept for DLC).",
        ),
        Records(
            key="AntiAffinityHyperNodes",
            source=SDK_NEW,
            keys=_HYPER_NODE,
            identity="HyperNodeName",
            most=MOST,
            help="Hyper nodes to exclude (ignored here, kept for DLC).",
        ),
    ),
    help="Nodes of a resource quota, by name.",
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
    help="Additional ports of the service.",
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
            help="One service for the role, or one per pod (default).",
        ),
    ),
    help="Ports for connecting to the role's nodes.",
)

CONSIDERED: Final = Flag(
    key="ConsiderInSuccessPolicy",
    source=SDK_NEW,
    path="roles[].completion",
    help="If set, only roles with this setting decide whether the job succeeded.",
)
IS_CHIEF: Final = Flag(
    key="IsChief",
    source=SDK_NEW,
    path="roles[].completion",
    aliases=("IsCheif",),
    help="This role decides whether the job succeeded. Only one role can have this setting.",
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
    stored_text("Driver", "GPU driver version."),
    ELASTIC_SPOT_SPECS,
    HYPER_NODE_SCHEDULING_CONFIG,
    LOCAL_MOUNT_SPECS,
    stored_text("OversoldType", "Idle resources for this role."),
    stored_text("QuotaId", "Quota for this role only."),
    RESTART_POLICY,
    STARTUP_DEPENDENCIES,
)
"""The keys of a role, in the order in which they are written."""
