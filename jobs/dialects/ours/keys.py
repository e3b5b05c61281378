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

HELPS: Final[Mapping[str, str]] = {
    "name": "Name of the job.",
    "description": "What the job is for.",
    "tags": "Labels of the person's own.",
    "framework": "The training framework; null for plain processes.",
    "roles": "The roles, each under the name that it has in the rest of the file.",
    "roles[].name": "Name of the role, where the rest of the file can't say it.",
    "roles[].replicas": "How many equal processes the role has.",
    "roles[].command": "The command of each replica.",
    "roles[].image": "Image of each replica.",
    "roles[].resources": "What each replica is given.",
    "roles[].resources.cpu_milli": "CPU of each replica, in thousandths of a core.",
    "roles[].resources.memory_mib": "Memory of each replica, in MiB.",
    "roles[].resources.shm_mib": "Shared memory of each replica, in MiB.",
    "roles[].resources.disk_mib": "Disk of each replica, in MiB.",
    "roles[].resources.gpus": "GPUs of each replica.",
    "roles[].resources.gpu_type": "Type of the GPUs; any type when empty.",
    "roles[].resources.instance_type": "A ready-made size of the target.",
    "roles[].resources.rdma": "Whether each replica gets the devices for RDMA.",
    "roles[].ports": "The ports of each replica, as a whole.",
    "roles[].ports[].label": "What the port is called.",
    "roles[].ports[].begin_at": "The first port number; 0 lets the backend choose.",
    "roles[].ports[].count": "How many ports there are under the label.",
    "roles[].completion": "When this role decides the whole job.",
    "roles[].completion.min_failed": "So many failed replicas fail the job; null for never.",
    "roles[].completion.min_succeeded": "So many succeeded replicas complete the job; null for all.",
    "roles[].env": "Environment variables of this role alone.",
    "roles[].bid": "A bid for preemptible resources.",
    "roles[].bid.discount_percent": "The highest price, in per cent of the market price.",
    "roles[].bid.price_micro": "The highest price an hour, in millionths.",
    "roles[].nodes": "Which nodes the role runs on.",
    "roles[].nodes.only": "The only nodes to run on, by name.",
    "roles[].nodes.never": "Nodes never to run on, by name.",
    "roles[].nodes.labels": "What the nodes must be: label and value.",
    "env": "Environment variables of the job; null takes one away.",
    "registry_auth": "Login for the registry of the images.",
    "registry_auth.registry": "The registry.",
    "registry_auth.username": "The user at the registry.",
    "registry_auth.password": "A secret by its placeholder, $SECRET:name.",
    "registry_auth.file_uri": "A file with the login that the engine can read.",
    "mounts": "Corrections to the mounts, element by element; {} leaves one as it is.",
    "mounts[].purpose": "Whether the place is for data, output or code.",
    "mounts[].id": "A dataset by its id.",
    "mounts[].uri": "The place.",
    "mounts[].path": "Where it is mounted.",
    "mounts[].read_only": "Whether it can only be read.",
    "mounts[].options": "Options of the mount.",
    "code": "Code to fetch before the command.",
    "code.id": "A registered code source by its id.",
    "code.uri": "The repository.",
    "code.branch": "The branch.",
    "code.commit": "The commit.",
    "code.path": "Where the code is put.",
    "requirements": "Python packages to install before the command.",
    "requirements.packages": "The packages, as pip takes them.",
    "requirements.directory": "The folder whose requirements.txt is installed.",
    "software": "What every replica loads before its command.",
    "software.modules": "Environment modules to load, in this order.",
    "software.conda": "The folder of a conda environment to activate.",
    "software.venv": "The folder of a Python virtual environment to activate.",
    "workspace": "The workspace of the job.",
    "quota": "The resource quota; public resources when empty.",
    "priority": "1 (last) to 9 (first).",
    "retry": "Automatic new attempts.",
    "retry.limit": "How many new attempts there may be; null for no end.",
    "retry.on_success": "Whether a job that ended well is started again too.",
    "retry.fancy": "Whether failures of the platform are retried without being counted.",
    "time_limit_s": "The longest running time in seconds; null for no limit.",
    "end_signal": "A warning before the end.",
    "end_signal.signal": "The signal that is sent.",
    "end_signal.seconds_before": "How many seconds before the end.",
    "grace_s": "Seconds between being asked to end and being ended.",
    "keep_failed_s": "How many seconds a failed replica's folder and container are kept.",
    "hold": "Whether the job is held until it is released.",
    "not_before": "The earliest start, as an RFC 3339 time.",
    "after": "Jobs that must have come to an end first, all of them.",
    "after[].job": "The job's id, or the name of one of your own as user~name.",
    "after[].when": "What has to have become of it.",
    "after_never": "Whether the job is stopped, or held, once that can't come true any more.",
    "idle": "Whether the job runs on what other quotas leave idle.",
    "cpu_affinity": "Whether the replicas are bound to cores.",
    "reserve_after": "How long an ended job keeps its resources.",
    "reserve_after.seconds": "For how many seconds.",
    "reserve_after.when": "After which ends.",
    "fault_tolerance": "Automatic fault tolerance.",
    "fault_tolerance.enabled": "Whether it is on.",
    "fault_tolerance.arguments": "Its arguments.",
    "sanity_check": "A check of the nodes before the start.",
    "sanity_check.enabled": "Whether it is on.",
    "sanity_check.arguments": "Its arguments.",
    "tensorboard": "A TensorBoard beside the job.",
    "tensorboard.enabled": "Whether it is on.",
    "tensorboard.log_path": "The folder that it shows.",
    "network": "The virtual network of the job.",
    "network.vpc": "The VPC.",
    "network.switch": "The vswitch.",
    "network.security_group": "The security group.",
    "network.cidrs": "Extended CIDR blocks.",
    "network.gateway": "The way to the internet.",
    "instance_role": "The RAM role: empty, default, or its ARN.",
    "visibility": "Who may see the job.",
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
    about = "What this system has no word for and the console knows, in the console's own names."
    return Group(key=name, source=CONSOLE, path="*", keys=(*besides, *KEYS), help=about)
