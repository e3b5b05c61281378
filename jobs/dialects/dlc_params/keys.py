"""Keys of a parameter file of the `dlc` command line, and what each is called in a `CreateJob` request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from jobs.dialects.dlc import keys as dlc
from jobs.dialects.dlc.limits import PAGE
from jobs.dialects.dlc_params import shapes
from jobs.dialects.dlc_params.shapes import ValueShape
from jobs.dialects.fields import AnyKey, Bag, Integer, Text, Texts, table
from jobs.dialects.spans import split


@dataclass(frozen=True, slots=True)
class Param:
    """One key: `rule` is what is known of it, `to` its pointer in the request ("" when it has none)."""

    rule: AnyKey
    to: str = ""
    shape: ValueShape = shapes.TEXT

    @property
    def key(self) -> str:
        """The key as it is written."""
        return self.rule.key


_SHAPES: Final = {Integer: shapes.NUMBER, Bag: shapes.PAIRS, Texts: shapes.LIST}
"""The shape of a value by its rule; of the others it is the text."""


def _param(key: str, to: str, shape: ValueShape | None = None, **changes: Any) -> Param:
    """Return the row of a key for the one at the pointer `to` of a request; its rule has `changes`."""
    keys: tuple[AnyKey, ...] = dlc.JOB
    rule: AnyKey = dlc.DISPLAY_NAME
    for token in split(to):
        rule = table(keys).by_name.get(token, rule)  # the type of a role is no key
        keys = getattr(rule, "keys", keys)
    shape = shape or _SHAPES.get(type(rule), shapes.TEXT)
    return Param(replace(rule, key=key, aliases=(), **changes), to, shape)


def _own_text(key: str, help_text: str) -> Param:
    """Return the row of a key that means something to the command line only."""
    return Param(Text(key=key, source=PAGE, help=help_text, blank=True))


COMMON: Final = (
    _param("name", "/DisplayName"),
    _param("command", "/UserCommand", shapes.COMMAND, required=True),
    _param("workspace_id", "/WorkspaceId"),
    _param("resource_id", "/ResourceId"),
    _param("priority", "/Priority"),
    Param(
        Texts(key="data_sources", source=PAGE, path="mounts[].id", help="Dataset IDs, comma-separated."),
        "/DataSources",
        shapes.IDS,
    ),
    Param(
        Texts(
            key="data_source_uris",
            source=PAGE,
            path="mounts[]",
            help="Locations to mount directly, oss://bucket.endpoint/path/::/mnt/data, comma-separated.",
        ),
        "/DataSources",
        shapes.MOUNTS,
    ),
    _param("code_source", "/CodeSource/CodeSourceId"),
    _param("code_branch", "/CodeSource/Branch"),
    _param("code_commit", "/CodeSource/Commit"),
    _param("thirdparty_libs", "/ThirdpartyLibs"),
    _param("thirdparty_lib_dir", "/ThirdpartyLibDir"),
    _param("vpc_id", "/UserVpc/VpcId"),
    _param("switch_id", "/UserVpc/SwitchId"),
    _param("security_group_id", "/UserVpc/SecurityGroupId"),
    _param("extended_cidrs", "/UserVpc/ExtendedCIDRs"),
    _param("default_route", "/UserVpc/DefaultRoute"),
    _param(
        "job_max_running_time_minutes",
        "/JobMaxRunningTimeMinutes",
        default=0,
        help="Time limit in minutes; 0 (default) for no limit.",
    ),
    _param("success_policy", "/SuccessPolicy"),
    _param("envs", "/Envs"),
    _param("tags", "/Settings/Tags"),
    _param("oversold_type", "/Settings/OversoldType"),
    _param("job_reserved_minutes", "/Settings/JobReservedMinutes"),
    _param("job_reserved_policy", "/Settings/JobReservedPolicy"),
    _param("advanced_settings", "/Settings/AdvancedSettings"),
    _param("aimaster_args", "/Settings/ErrorMonitoringArgs", shapes.AIMASTER, path="fault_tolerance"),
    _own_text("driver", "GPU driver version."),
    _own_text("interactive", "Follow the job's output: true or false."),
    _own_text("exit_code_on_stopped", "Exit code of the command line if the job was stopped."),
    _own_text("running_timeout", "Time that the command line waits for the job."),
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


_ROLE_KEYS: Final = (
    ("image", "Image"),
    ("spec", "EcsSpec"),
    ("cpu", "ResourceConfig/CPU"),
    ("gpu", "ResourceConfig/GPU"),
    ("gpu_type", "ResourceConfig/GPUType"),
    ("memory", "ResourceConfig/Memory"),
    ("shared_memory", "ResourceConfig/SharedMemory"),
)
"""End of a role's key → the key of a request's role."""


def _of_role(prefix: str, kind: str, count: str) -> tuple[Param, ...]:
    base, shape = f"/JobSpecs/{kind}", shapes.FLAG if kind == "Chief" else shapes.NUMBER
    return (
        _param(count, f"{base}/PodCount", shape, expected="", help=f"How many {kind} nodes."),
        *(_param(f"{prefix}_{name}", f"{base}/{key}") for name, key in _ROLE_KEYS),
    )


PARAMS: Final = (
    *COMMON,
    *(param for prefix, (kind, count) in ROLES.items() for param in _of_role(prefix, kind, count)),
)
BY_KEY: Final = {param.key: param for param in PARAMS}
KNOWN: Final = frozenset(BY_KEY)
RULES: Final = tuple(param.rule for param in PARAMS)
