"""Keys of a parameter file of the `dlc` command line, and what each is called in a `CreateJob` request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from jobs.dialects.dlc import keys as dlc
from jobs.dialects.dlc import role_keys, settings_keys
from jobs.dialects.dlc.limits import PAGE
from jobs.dialects.fields import AnyKey, Text, Texts


class Shape(Enum):
    """How a value is written."""

    TEXT = auto()
    NUMBER = auto()
    FLAG = auto()
    LIST = auto()
    """Words with commas between."""
    PAIRS = auto()
    """`k=v,k=v`."""
    IDS = auto()
    """Ids of datasets, with commas between."""
    MOUNTS = auto()
    """`uri::path`, with commas between."""
    COMMAND = auto()
    """A shell command on one line."""
    AIMASTER = auto()
    """Arguments; having them switches the AIMaster on."""


@dataclass(frozen=True, slots=True)
class Param:
    """One key: `rule` is what is known of it, `to` its pointer in the request ("" when it has none)."""

    rule: AnyKey
    to: str = ""
    shape: Shape = Shape.TEXT

    @property
    def key(self) -> str:
        """The key as it is written."""
        return self.rule.key


def _text(key: str, help_text: str) -> Param:
    """A key that means something to the command line only."""
    return Param(Text(key=key, source=PAGE, help=help_text, blank=True))


COMMON: Final = (
    Param(replace(dlc.DISPLAY_NAME, key="name"), "/DisplayName"),
    Param(replace(dlc.USER_COMMAND, key="command", required=True), "/UserCommand", Shape.COMMAND),
    Param(replace(dlc.WORKSPACE_ID, key="workspace_id"), "/WorkspaceId"),
    Param(replace(dlc.RESOURCE_ID, key="resource_id"), "/ResourceId"),
    Param(replace(dlc.PRIORITY, key="priority"), "/Priority", Shape.NUMBER),
    Param(
        Texts(key="data_sources", source=PAGE, path="mounts[].id", help="Ids of datasets, commas between."),
        "/DataSources",
        Shape.IDS,
    ),
    Param(
        Texts(
            key="data_source_uris",
            source=PAGE,
            path="mounts[]",
            help="Places to mount directly, oss://bucket.endpoint/path/::/mnt/data, commas between.",
        ),
        "/DataSources",
        Shape.MOUNTS,
    ),
    Param(replace(dlc.CODE_SOURCE_ID, key="code_source"), "/CodeSource/CodeSourceId"),
    Param(replace(dlc.CODE_BRANCH, key="code_branch"), "/CodeSource/Branch"),
    Param(replace(dlc.CODE_COMMIT, key="code_commit"), "/CodeSource/Commit"),
    Param(replace(dlc.LIBRARIES, key="thirdparty_libs"), "/ThirdpartyLibs", Shape.LIST),
    Param(replace(dlc.LIBRARY_DIR, key="thirdparty_lib_dir"), "/ThirdpartyLibDir"),
    Param(replace(dlc.VPC_ID, key="vpc_id"), "/UserVpc/VpcId"),
    Param(replace(dlc.SWITCH_ID, key="switch_id"), "/UserVpc/SwitchId"),
    Param(replace(dlc.SECURITY_GROUP_ID, key="security_group_id"), "/UserVpc/SecurityGroupId"),
    Param(
        replace(dlc.EXTENDED_CIDRS, key="extended_cidrs", aliases=()), "/UserVpc/ExtendedCIDRs", Shape.LIST
    ),
    Param(replace(dlc.DEFAULT_ROUTE, key="default_route"), "/UserVpc/DefaultRoute"),
    Param(
        replace(
            dlc.MAX_RUNNING,
            key="job_max_running_time_minutes",
            default=0,
            help="The longest the job may run, in minutes; 0, the default, for no limit.",
        ),
        "/JobMaxRunningTimeMinutes",
        Shape.NUMBER,
    ),
    Param(replace(dlc.SUCCESS_POLICY, key="success_policy"), "/SuccessPolicy"),
    Param(replace(dlc.ENVS, key="envs"), "/Envs", Shape.PAIRS),
    Param(replace(settings_keys.TAGS, key="tags"), "/Settings/Tags", Shape.PAIRS),
    Param(replace(settings_keys.OVERSOLD_TYPE, key="oversold_type"), "/Settings/OversoldType"),
    Param(
        replace(settings_keys.RESERVED_MINUTES, key="job_reserved_minutes"),
        "/Settings/JobReservedMinutes",
        Shape.NUMBER,
    ),
    Param(replace(settings_keys.RESERVED_POLICY, key="job_reserved_policy"), "/Settings/JobReservedPolicy"),
    Param(
        replace(settings_keys.ADVANCED, key="advanced_settings"), "/Settings/AdvancedSettings", Shape.PAIRS
    ),
    Param(
        replace(settings_keys.AIMASTER_ARGS, key="aimaster_args", path="fault_tolerance"),
        "/Settings/ErrorMonitoringArgs",
        Shape.AIMASTER,
    ),
    _text("driver", "Version of the GPU driver."),
    _text("interactive", "Follow the job's output: true or false."),
    _text("exit_code_on_stopped", "What the command line ends with when the job was stopped."),
    _text("running_timeout", "How long the command line waits for the job."),
)
"""The keys of all job types."""

ROLES: Final = {
    "worker": ("Worker", "workers"),
    "master": ("Master", "masters"),
    "ps": ("PS", "ps"),
    "chief": ("Chief", "chief"),
    "evaluator": ("Evaluator", "evaluators"),
    "graphlearn": ("GraphLearn", "graphlearns"),
    "head": ("Head", "heads"),
}
"""Prefix of a role's keys → its type, and the key of its number."""


def _of_role(prefix: str, kind: str, count: str) -> tuple[Param, ...]:
    base = f"/JobSpecs/{kind}"
    size = f"{base}/ResourceConfig"
    counted = Param(
        replace(role_keys.POD_COUNT, key=count, expected="", help=f"How many {kind} nodes."),
        f"{base}/PodCount",
        Shape.FLAG if kind == "Chief" else Shape.NUMBER,
    )
    amounts = (
        ("cpu", role_keys.CPU),
        ("gpu", role_keys.GPU),
        ("gpu_type", role_keys.GPU_TYPE),
        ("memory", role_keys.MEMORY),
        ("shared_memory", role_keys.SHARED_MEMORY),
    )
    return (
        counted,
        Param(replace(role_keys.IMAGE, key=f"{prefix}_image"), f"{base}/Image"),
        Param(replace(role_keys.ECS_SPEC, key=f"{prefix}_spec"), f"{base}/EcsSpec"),
        *(Param(replace(rule, key=f"{prefix}_{name}"), f"{size}/{rule.key}") for name, rule in amounts),
    )


PARAMS: Final = (
    *COMMON,
    *(param for prefix, (kind, count) in ROLES.items() for param in _of_role(prefix, kind, count)),
)
BY_KEY: Final = {param.key: param for param in PARAMS}
KNOWN: Final = frozenset(BY_KEY)
RULES: Final = tuple(param.rule for param in PARAMS)
