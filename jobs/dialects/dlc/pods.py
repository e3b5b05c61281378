"""Keys of DLC's ExtraPodSpec and of the other parts of a role that are kept for DLC alone.

None of them is ever executed here: side containers, init containers and hooks run only where DLC runs.
"""

from __future__ import annotations

from typing import Final

from jobs.dialects.dlc.limits import PAGE, SDK_17, SDK_NEW
from jobs.dialects.fields import (
    CONSOLE,
    AnyKey,
    Bag,
    Choice,
    Flag,
    Fraction,
    Group,
    Integer,
    Limit,
    Records,
    Text,
    Texts,
)

MOST: Final = 1000
COUNT_MOST: Final = Limit(2**31, CONSOLE)


def kept_text(key: str, help_text: str, source: str = SDK_NEW) -> Text:
    """A string that only DLC understands."""
    return Text(key=key, source=source, help=help_text, blank=True)


def kept_flag(key: str, help_text: str, source: str = SDK_NEW) -> Flag:
    """True or false, for DLC only."""
    return Flag(key=key, source=source, help=help_text)


def kept_count(key: str, help_text: str, source: str = SDK_NEW) -> Integer:
    """A number that only DLC understands."""
    return Integer(key=key, source=source, help=help_text, most=COUNT_MOST)


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
    kept_flag("Privileged", "Run with all rights on the node."),
    kept_count("RunAsUser", "User id."),
    kept_count("RunAsGroup", "Group id."),
    _group(
        "SeccompProfile",
        "System calls that are allowed.",
        (kept_text("Type", "Kind of profile."), kept_text("LocalhostProfile", "Path of a profile.")),
    ),
)

CONTAINER_KEYS: Final = (
    kept_text("Name", "Name of the container.", PAGE),
    kept_text("Image", "Image of the container.", PAGE),
    _texts("Command", "Its command, in words.", PAGE),
    _texts("Args", "Arguments of the command.", PAGE),
    kept_text("WorkingDir", "Where the command starts.", PAGE),
    Records(
        key="Env",
        source=PAGE,
        keys=(
            kept_text("Name", "Name of the variable.", PAGE),
            kept_text("Value", "Value of the variable.", PAGE),
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
)


def _containers(key: str, help_text: str) -> Records:
    return Records(key=key, source=PAGE, keys=CONTAINER_KEYS, identity="Name", most=MOST, help=help_text)


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
        kept_count("MinReplicas", "At least."),
        kept_count("MaxReplicas", "At most."),
        kept_text("ScalingStrategy", "How it scales."),
        _texts("PodsToDelete", "Pods to go first.", SDK_NEW),
        _group(
            "AutoscalingMetricSpec",
            "What decides.",
            (
                kept_text("MetricName", "The metric."),
                Fraction(key="TargetValue", source=SDK_NEW, help="Its value to aim at."),
                kept_text("Tolerance", "How far from the target the metric may be."),
                kept_count("StabilizationWindowSeconds", "How long to wait, in seconds."),
            ),
        ),
    ),
)

ELASTIC_SPOT_SPECS: Final = Records(
    key="ElasticSpotSpecs",
    source=SDK_NEW,
    keys=(
        kept_text("InstanceType", "The instance type."),
        kept_text("SpotStrategy", "How to bid."),
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
        kept_count("MinAvailable", "At least so many nodes."),
        kept_text("QualityPolicy", "Which to prefer."),
    ),
)

LOCAL_MOUNT_SPECS: Final = Records(
    key="LocalMountSpecs",
    source=SDK_NEW,
    keys=(
        kept_text("LocalPath", "Path on the node."),
        kept_text("MountMode", "How it is mounted."),
        kept_text("MountPath", "Path in the container."),
    ),
    identity="MountPath",
    most=MOST,
    help="Directories of the nodes; kept for DLC.",
)

STARTUP_DEPENDENCIES: Final = Records(
    key="StartupDependencies",
    source=SDK_NEW,
    keys=(
        kept_text("Type", "The role to wait for."),
        kept_text("OnPhase", "The phase of that role that is waited for."),
        kept_text("MinReplicas", "How many replicas of that role."),
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
