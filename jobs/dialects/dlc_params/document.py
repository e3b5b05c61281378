"""JobSpec → the keys and values of a parameter file, by way of the `CreateJob` request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from jobs.dialects import pairs
from jobs.dialects.dlc import document as dlc
from jobs.dialects.dlc.job_types import OTHER_NAMES
from jobs.dialects.dlc_params import values
from jobs.dialects.dlc_params.keys import COMMON, PARAMS, ROLES, Param, Shape
from jobs.dialects.dlc_params.lines import BLANKS
from jobs.dialects.rendering import JsonObject
from jobs.dialects.spans import split
from jobs.spec import JobSpec

JOB_TYPE: Final = "job_type"
"""The job type: an extra, and no key of the file but of its document."""


def document(spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
    """The job type, and the file's keys with their values in the order of the page's sample."""
    kept = {f"/{key}": value for key, value in (("JobType", extras.get(JOB_TYPE)),) if value}
    request = dlc.plain(spec, kept)
    flat = flattened(request)
    roles = _roles(request)
    ordered = {**{key: flat[key] for key in ("name",) if key in flat}, **roles, **flat}
    for pointer, value in extras.items():
        key = "".join(split(pointer)) if pointer.startswith("/") else ""
        if key and isinstance(value, str):
            ordered.setdefault(key, value)
    return {JOB_TYPE: str(request["JobType"]), **ordered}


def flattened(request: JsonObject) -> dict[str, str]:
    """What `request` says that is not about a role, by the file's keys."""
    texts = {param.key: _text(param, _at(request, split(param.to)), request) for param in COMMON if param.to}
    return {key: text for key, text in texts.items() if text}


def _at(value: object, tokens: list[str]) -> object:
    for token in tokens:
        value = value.get(token) if isinstance(value, dict) else None
    return value


def _text(param: Param, value: object, request: JsonObject) -> str:
    """A value on one line; "" for nothing."""
    match param.shape:
        case Shape.NUMBER:
            return str(value) if isinstance(value, int) and value else ""
        case Shape.LIST:
            return _plain(",".join(map(str, value))) if isinstance(value, list) else ""
        case Shape.PAIRS:
            given = value if isinstance(value, dict) else {}
            return _plain(pairs.written({str(name): str(each) for name, each in given.items()}))
        case Shape.IDS:
            known = [each["DataSourceId"] for each in _sources(value) if "DataSourceId" in each]
            return _plain(",".join(map(str, known)))
        case Shape.MOUNTS:
            direct = [each for each in _sources(value) if "DataSourceId" not in each]
            places = [(str(each["Uri"]), str(each.get("MountPath", ""))) for each in direct]
            return _plain(values.written_mounts(places))
        case Shape.COMMAND:
            return values.written_command(str(value), BLANKS) if value else ""
        case Shape.AIMASTER:
            on = _at(request, ["Settings", "EnableErrorMonitoringInAIMaster"])
            return _plain(str(value)) if on and value else ""
        case _:
            return _plain(str(value)) if value else ""


def _plain(text: str) -> str:
    return values.on_one_line(text).strip(BLANKS)


def _sources(value: object) -> list[dict[str, object]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _roles(request: JsonObject) -> dict[str, str]:
    """The keys of each role; a type that the file has no keys for gets the first that are free."""
    flat: dict[str, str] = {}
    taken: set[str] = set()
    roles = _sources(request["JobSpecs"])
    own = {kind for kind in map(_known_type, roles) if kind}
    for role in roles:
        kind = _known_type(role)
        if kind is None or kind in taken:
            kind = next((free for free, _count in ROLES.values() if free not in taken | own), None)
        if kind is None:
            break
        taken.add(kind)
        flat |= dict(_role(kind, role))
    return flat


def _known_type(role: Mapping[str, object]) -> str | None:
    name = str(role["Type"])
    name = OTHER_NAMES.get(name.lower(), name)
    return next((kind for kind, _count in ROLES.values() if kind.lower() == name.lower()), None)


def _role(kind: str, role: JsonObject) -> Iterator[tuple[str, str]]:
    for param in PARAMS:
        tokens = split(param.to)
        if tokens[:2] != ["JobSpecs", kind]:
            continue
        value = _at(role, tokens[2:])
        if param.shape is Shape.FLAG:
            yield param.key, "true"
        elif text := _plain(str(value)) if value else "":
            yield param.key, text
