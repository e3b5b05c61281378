"""The keys of our object, made from the JobSpec itself: what a JobSpec can say can be said here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

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
    Flag,
    Group,
    Integer,
    Limit,
    Named,
    Records,
    Text,
    Texts,
)
from jobs.spec import JobSpec

_INIT: Final = "Containers that run one after the other before the command."
_SIDECAR: Final = "Containers that run beside the command."

HELPS: Final[Mapping[str, str]] = {
    "name": "Name of the job.",
    "description": "Description of the job.",
    "tags": "User-defined labels.",
    "framework": "The training framework; null for plain processes.",
    "roles": "Roles, by their names in the rest of the file.",
    "roles[].name": "Role name, if the rest of the file can't express it.",
    "roles[].replicas": "Number of replicas of the role.",
    "roles[].command": "The command of each replica.",
    "roles[].image": "Image of each replica.",
    "roles[].resources": "Resources of each replica.",
    "roles[].resources.cpu_milli": "CPU of each replica, in thousandths of a core.",
    "roles[].resources.memory_mib": "Memory of each replica, in MiB.",
    "roles[].resources.shm_mib": "Shared memory of each replica, in MiB.",
    "roles[].resources.disk_mib": "Disk of each replica, in MiB.",
    "roles[].resources.gpus": "GPUs of each replica.",
    "roles[].resources.gpu_type": "GPU type. If empty, any type.",
    "roles[].resources.instance_type": "Predefined size on the target system.",
    "roles[].resources.rdma": "Whether each replica gets RDMA devices.",
    "roles[].ports": "All ports of each replica.",
    "roles[].ports[].label": "Label of the port.",
    "roles[].ports[].begin_at": "First port number; 0 to let the backend assign one.",
    "roles[].ports[].count": "Number of ports with the label.",
    "roles[].completion": "Completion policy: when this role decides the result of the job.",
    "roles[].completion.min_failed": "Fail the job after this many failed replicas; null for never.",
    "roles[].completion.min_succeeded": "Complete the job after this many succeeded replicas; null for all.",
    "roles[].restart": "Restarts because of replicas of this role.",
    "roles[].restart.condition": "Failures that the job's retries are for.",
    "roles[].restart.limit": "Restarts of the processes of one replica by torchrun, in an attempt.",
    "roles[].env": "Environment variables for this role only.",
    "roles[].bid": "A bid for preemptible resources.",
    "roles[].bid.discount_percent": "Maximum price, in percent of the market price.",
    "roles[].bid.price_micro": "Maximum price per hour, in millionths.",
    "roles[].nodes": "Nodes that the role runs on.",
    "roles[].nodes.only": "Names of nodes to use exclusively.",
    "roles[].nodes.never": "Names of nodes to exclude.",
    "roles[].nodes.labels": "Required node labels and values.",
    **{
        f"roles[].{kind}{member}": help_text
        for kind, about in (("init_containers", _INIT), ("sidecars", _SIDECAR))
        for member, help_text in {
            "": about,
            "[].name": "Name of the container.",
            "[].image": "Image of the container. If empty, the role's.",
            "[].command": "Command, as a list of words. If empty, the image's.",
            "[].args": "Arguments of the command.",
            "[].working_dir": "Working directory.",
            "[].env": "Environment variables of this container.",
        }.items()
    },
    "roles[].shared_paths": "Empty folders that all containers of a replica share.",
    "env": "Environment variables of the job; null removes a variable.",
    "registry_auth": "Credentials for the image registry.",
    "registry_auth.registry": "The registry.",
    "registry_auth.username": "User name at the registry.",
    "registry_auth.password": "A secret, by its placeholder $SECRET:name.",
    "registry_auth.file_uri": "A file with the credentials that the engine can read.",
    "mounts": "Overrides for the mounts, one element per mount; {} leaves a mount unchanged.",
    "mounts[].purpose": "Purpose of the mount: data, output or code.",
    "mounts[].id": "Dataset ID.",
    "mounts[].uri": "Location.",
    "mounts[].path": "Mount path.",
    "mounts[].read_only": "Whether the mount is read-only.",
    "mounts[].options": "Mount options.",
    "code": "Code to fetch before running the command.",
    "code.id": "Registered code source, by ID.",
    "code.uri": "The repository, or an archive, object store or HDFS address.",
    "code.branch": "The branch.",
    "code.commit": "The commit.",
    "code.path": "Code path.",
    "code.submodules": "Fetch submodules from the repository's own host.",
    "requirements": "Python packages to install before running the command.",
    "requirements.packages": "Packages, in pip's syntax.",
    "requirements.directory": "Folder with the requirements.txt to install.",
    "software": "Modules and environments that every replica loads before the command.",
    "software.modules": "Environment modules to load, in order.",
    "software.conda": "Folder of a conda environment to activate.",
    "software.venv": "Folder of a Python virtual environment to activate.",
    "software.bccl": "Whether Baidu's BCCL is loaded in place of NCCL.",
    "workspace": "The workspace of the job.",
    "quota": "Resource quota. If empty, public resources.",
    "priority": "Priority, 1 (lowest) to 9 (highest).",
    "retry": "Automatic retries.",
    "retry.limit": "Maximum number of retries; null for unlimited.",
    "retry.on_success": "Whether a succeeded job is also restarted.",
    "retry.fancy": "Whether platform failures are retried without counting as retries.",
    "time_limit_s": "Time limit in seconds; null for no limit.",
    "end_signal": "Warning signal before the end.",
    "end_signal.signal": "Signal to send.",
    "end_signal.seconds_before": "Seconds before the end.",
    "grace_s": "Grace period: seconds between the stop request and the forced end.",
    "keep_failed_s": "Seconds to keep the folder and container of a failed replica.",
    "hold": "Whether the job is on hold until released.",
    "not_before": "Earliest start, as RFC 3339 time.",
    "after": "Dependencies: jobs that must have ended first.",
    "after[].job": "Job ID, or user~name for a job of your own.",
    "after[].when": "Required result of that job.",
    "after_never": "Whether the job is stopped or put on hold once the dependency can't be met.",
    "idle": "Whether the job may use idle resources of other quotas.",
    "cpu_affinity": "Whether replicas are pinned to CPU cores.",
    "reserve_after": "Resource retention after the job has ended.",
    "reserve_after.seconds": "Duration in seconds.",
    "reserve_after.when": "Results after which resources are retained.",
    "fault_tolerance": "Automatic fault tolerance.",
    "fault_tolerance.enabled": "Whether enabled.",
    "fault_tolerance.arguments": "Arguments.",
    "fault_tolerance.patterns": "Regular expressions; a line that matches one also restarts the job.",
    "fault_tolerance.restart_scope": "What is restarted: the whole job, or only the replica that failed.",
    "sanity_check": "Node check before the start.",
    "sanity_check.enabled": "Whether enabled.",
    "sanity_check.arguments": "Arguments.",
    "alert": "Alert by a threshold of a metric while the job runs.",
    "alert.metric": "Metric: percent of the requested GPUs, CPU or memory, or the running time in minutes.",
    "alert.comparison": "Side of the value on which the alert is sent.",
    "alert.value": "Percent or minutes.",
    "alert.minutes": "Minutes for which the condition must hold.",
    "tensorboard": "TensorBoard for the job.",
    "tensorboard.enabled": "Whether enabled.",
    "tensorboard.log_path": "Log folder that TensorBoard displays.",
    "network": "Virtual network of the job.",
    "network.vpc": "VPC.",
    "network.switch": "vSwitch.",
    "network.security_group": "Security group.",
    "network.cidrs": "Extended CIDR blocks.",
    "network.gateway": "Internet access.",
    "instance_role": "RAM role: empty, default, or an ARN.",
    "visibility": "Visibility of the job.",
    "framework_options": "Advanced settings of the framework.",
}


NAME: Final = "JobConsole"
ROLES: Final = "roles"
MOUNTS: Final = "mounts"
"""The list whose elements are corrected one by one; other lists are said as a whole."""

VARIABLES: Final = frozenset({"env"})

_UNSAID: Final = frozenset({"secret_env"})
"""Secret variables are said among the others, by placeholders."""

_UNITS: Final = (("_mib", "MiB"), ("_milli", "milli-CPU"), ("_s", "seconds"), ("_micro", "millionths"))
_MOST: Final = {
    "roles[].replicas": MOST_REPLICAS,
    "roles[].resources.cpu_milli": MOST_CPUS * 1000,
    "roles[].resources.memory_mib": MOST_MEMORY_MIB,
    "roles[].resources.shm_mib": MOST_MEMORY_MIB,
    "roles[].resources.disk_mib": MOST_MEMORY_MIB,
    "roles[].resources.gpus": MOST_GPUS,
    "roles[].ports[].count": MOST_PORTS,
}
_MOST_ELEMENTS: Final = 1000
_MOST_ROLES: Final = 1000
_WORDS: Final = re.compile(r"\^\((?P<words>[A-Za-z0-9|]+)\)\$")

Schema: TypeAlias = Mapping[str, Any]
"""JSON Schema as pydantic makes it."""

_SCHEMA: Final[Schema] = JobSpec.model_json_schema()
NULLABLE: Final[set[str]] = set()
"""Paths at which null is a value of its own."""


def _keys(model: Schema, prefix: str) -> tuple[AnyKey, ...]:
    required = model.get("required", ())
    return tuple(
        _key(name, schema, f"{prefix}{name}", required=name in required)
        for name, schema in model["properties"].items()
        if name not in _UNSAID
    )


def _key(name: str, said: Schema, path: str, *, required: bool) -> AnyKey:
    """Return the rule for one field of a JobSpec."""
    schema, default = _resolve(said), said.get("default")
    if any(each == {"type": "null"} for each in said.get("anyOf", ())):
        NULLABLE.add(path)
    about: dict[str, Any] = {"key": name, "source": CONSOLE, "path": path, "help": HELPS[path]}
    listed = path.endswith("]") or _is_element(path)
    match schema.get("type"):
        case "integer":
            return _integer(about, schema, default)
        case "boolean":
            return Flag(**about, default=bool(default))
        case "array":
            return _list(about, schema)
        case "object" if "properties" in schema and set(schema["properties"]) != {"name"}:
            return Group(**about, keys=_keys(schema, f"{path}."))
        case "object" if "properties" not in schema:
            return Bag(**about)
    words = schema.get("enum") or _list_words(schema)
    if words:
        return Choice(**about, meanings={word: word for word in words}, default=default or "")
    return Text(
        **about,
        default=default or "",
        blank="minLength" not in schema,
        longest=schema.get("maxLength", 0),
        required=required and listed,
    )


def _is_element(path: str) -> bool:
    """Return whether the field belongs to an element of a list that is said as a whole."""
    around = path.rpartition(".")[0]
    return around.endswith("[]") and around not in (f"{ROLES}[]", f"{MOUNTS}[]")


def _resolve(said: Schema) -> Schema:
    """Return the schema that is meant: behind a reference, and of a value or null the value's."""
    for each in said.get("anyOf", ()):
        if each != {"type": "null"}:
            return _resolve(each)
    if "$ref" in said:
        found: Schema = _SCHEMA["$defs"][said["$ref"].rpartition("/")[2]]
        return found
    return said


def _integer(about: dict[str, Any], schema: Schema, default: int | None) -> Integer:
    path = about["path"]
    most = schema.get("maximum", _MOST.get(path))
    return Integer(
        **about,
        default=default,
        unit=next((unit for end, unit in _UNITS if path.endswith(end)), ""),
        nullable=path in NULLABLE,
        least=Limit(schema["minimum"], CONSOLE) if "minimum" in schema else None,
        most=None if most is None else Limit(most, CONSOLE),
    )


def _list(about: dict[str, Any], schema: Schema) -> AnyKey:
    element = _resolve(schema["items"])
    if element.get("type") == "string":
        return Texts(**about)
    keys = _keys(element, f"{about['path']}[].")
    if about["key"] == ROLES:
        return Named(**about, keys=keys, most=_MOST_ROLES, allowed="")
    return Records(**about, keys=keys, identity=keys[0].key, most=_MOST_ELEMENTS)


def _list_words(schema: Schema) -> list[str]:
    match = _WORDS.fullmatch(schema.get("pattern", ""))
    return match["words"].split("|") if match else []


KEYS: Final = _keys(_SCHEMA, "")
"""The keys of our object, in the order of the JobSpec."""


def group(name: str, *besides: AnyKey) -> Group:
    """Return the object under `name`, with what a dialect has in it `besides`."""
    about = "Console settings that this format can't express, under the console's own names."
    return Group(key=name, source=CONSOLE, path="*", keys=(*besides, *KEYS), help=about)
