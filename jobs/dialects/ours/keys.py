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
from jobs.dialects.ours.helps import HELPS
from jobs.spec import JobSpec

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
    """The rule for one field of a JobSpec."""
    schema, default = _resolved(said), said.get("default")
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
    words = schema.get("enum") or _words(schema)
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
    """Whether the field belongs to an element of a list that is said as a whole."""
    around = path.rpartition(".")[0]
    return around.endswith("[]") and around not in (f"{ROLES}[]", f"{MOUNTS}[]")


def _resolved(said: Schema) -> Schema:
    """The schema that is meant: behind a reference, and of a value or null the value's."""
    for each in said.get("anyOf", ()):
        if each != {"type": "null"}:
            return _resolved(each)
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
    element = _resolved(schema["items"])
    if element.get("type") == "string":
        return Texts(**about)
    keys = _keys(element, f"{about['path']}[].")
    if about["key"] == ROLES:
        return Named(**about, keys=keys, most=_MOST_ROLES, allowed="")
    return Records(**about, keys=keys, identity=keys[0].key, most=_MOST_ELEMENTS)


def _words(schema: Schema) -> list[str]:
    match = _WORDS.fullmatch(schema.get("pattern", ""))
    return match["words"].split("|") if match else []


KEYS: Final = _keys(_SCHEMA, "")
"""The keys of our object, in the order of the JobSpec."""


def group(name: str, *besides: AnyKey) -> Group:
    """The object under `name`, with what a dialect has in it `besides`."""
    about = "What this system has no word for and the console knows, in the console's own names."
    return Group(key=name, source=CONSOLE, path="*", keys=(*besides, *KEYS), help=about)
