"""Settings of a cluster: the base of each backend's model, its fields for a form, and problems of values.

A backend's model is a frozen pydantic dataclass `CONFIG` in its module `config`.  A field that an admin may
set has a label and a help text in the backend's module `labels`, and the sentences of its problems lie there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Self, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError

from jobs.facilities import HDFS, WEB, split_data

FROZEN: Final = ConfigDict(extra="forbid", hide_input_in_errors=True)
"""Every model's: a name that is none of its fields is a problem, and no message holds a secret."""

_PATH_NAME: Final = re.compile(r"/[A-Za-z0-9._/+@-]+")
_WORD: Final = re.compile(r"[A-Za-z0-9._,+-]+")
CONSOLE_URL: Final = re.compile(
    r"https?://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._/-]*)?|https?://\[[0-9a-f:]+\](:[0-9]+)?/?"
)
"""An address at which nodes reach the console."""

Switch = Annotated[bool, Field(strict=True)]
Natural = Annotated[int, Field(strict=True, ge=0)]
Positive = Annotated[int, Field(strict=True, ge=1)]


def mark(message: str) -> str:
    """Mark a text for translation, imported as `_`; it is translated where it is shown."""
    return message


_ = mark

PROBLEMS: Final[Mapping[str, str]] = {
    "became_mapping": _("Replaced by storage mappings: Administration › Storage, or storage in site.yaml."),
    "characters": _("Contains characters that are not allowed."),
    "choice": _("Must be one of: %(expected)s."),
    "kind": _("Wrong type: %(kind)s expected."),
    "missing": _("Required."),
    "no_console": _("Enter the address at which nodes reach the console: https://… or http://…."),
    "no_namenode": _("%(value)s: enter hdfs://host:port and http://host:port or https://host:port."),
    "no_path": _("Invalid path “%(value)s”. Enter an absolute path; letters, digits and ._+@- are allowed."),
    "no_metric": _("%(value)s: no such metric. Known are %(known)s."),
    "no_priority": _("Invalid priority “%(value)s”. Use 1 to 9."),
    "no_prometheus": _("Enter the address of Prometheus: http://… or https://…."),
    "other": _("Invalid value: %(error)s."),
    "ports": _("Enter two port numbers from %(least)s to 65535, the smaller one first."),
    "too_large": _("Must be at most %(bound)s."),
    "too_small": _("Must be at least %(bound)s."),
    "unknown": _("Unknown setting."),
    "unknown_but": _("Unknown setting. Did you mean %(suggestion)s?"),
}
"""Sentences of the problems that settings of every backend may have, by code."""


NAMENODES: Final = (
    _("HDFS namenodes"),
    _(
        "HDFS addresses mapped to the namenode's HTTP interface (WebHDFS or HttpFS), as JSON: "
        '{"hdfs://namenode:9000": "http://namenode:9870"}.'
    ),
)
"""Label and help text of the setting `hdfs`."""


FORMER_STORAGE: Final = "datasets"
"""A setting of earlier versions."""


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """A problem of a setting: `name` is dotted, "" for all of them; `code` has a sentence."""

    name: str
    code: str
    params: Mapping[str, Any] = field(default_factory=dict)


class InvalidSettings(ValueError):
    """A validator of a model found these problems."""

    def __init__(self, *problems: SettingProblem) -> None:
        super().__init__(", ".join(each.code for each in problems))
        self.problems = problems


def invalid(code: str, **params: Any) -> InvalidSettings:
    """Return the exception for a problem of the field that is being validated."""
    return InvalidSettings(SettingProblem("", code, params))


def _check_namenodes(namenodes: dict[str, str]) -> dict[str, str]:
    """Refuse what does not map an HDFS address to an address of the web."""
    for name, address in namenodes.items():
        here, there = split_data(name), split_data(address)
        if here is None or here.scheme != HDFS or there is None or there.scheme not in WEB:
            raise invalid("no_namenode", value=f"{name}: {address}")
    return namenodes


Namenodes = Annotated[dict[str, str], AfterValidator(_check_namenodes)]


def check_folder(value: str) -> str:
    """Refuse what is no absolute path of plain characters: scripts and programs of engines hold it."""
    if not _PATH_NAME.fullmatch(value) or os.path.normpath(value) != value:
        raise invalid("no_path", value=value)
    return value


def _check_word(value: str) -> str:
    if not _WORD.fullmatch(value):
        raise invalid("no_name", value=value)
    return value


def _optional(check: Callable[[str], str]) -> AfterValidator:
    return AfterValidator(lambda value: value and check(value))


def _check_priority(value: str) -> str:
    if value not in set("123456789"):
        raise invalid("no_priority", value=value)
    return value


Address = Annotated[str, AfterValidator(lambda value: value.rstrip("/"))]
Folder = Annotated[str, AfterValidator(check_folder)]
OptionalFolder = Annotated[str, _optional(check_folder)]
Word = Annotated[str, AfterValidator(_check_word)]
OptionalWord = Annotated[str, _optional(_check_word)]
Priority = Annotated[str, AfterValidator(_check_priority)]


def check_rules(rules: Iterable[tuple[str, str, bool]]) -> None:
    """Refuse settings that don't go together.

    A rule has the name of a setting, the code of a problem, and whether the setting has it.
    """
    if problems := [SettingProblem(name, code) for name, code, is_wrong in rules if is_wrong]:
        raise InvalidSettings(*problems)


def is_loopback(url: str) -> bool:
    """Return whether an address means whichever machine uses it."""
    host = urlsplit(url).hostname or ""
    return host in {"localhost", "::1"} or host.endswith(".localhost") or host.startswith("127.")


def check_ports(least: int) -> AfterValidator:
    """Return the validator of a range of ports from `least` on."""

    def check(ports: tuple[int, int]) -> tuple[int, int]:
        if not least <= ports[0] < ports[1] <= 65535:
            raise invalid("ports", least=least)
        return ports

    return AfterValidator(check)


class Settings:
    """Base of a backend's model.

    `CONSOLE` names the settings of the console whose values are laid over the cluster's own, by the key that
    `from_settings` takes them under; OVERLAY names one that is itself a mapping of settings.
    `tries_assets`: the backend runs the checks of assets (`base.Submission.is_check`).
    """

    CONSOLE: ClassVar[Mapping[str, str]] = {}
    OVERLAY: ClassVar[str] = ""
    tries_assets: ClassVar[bool] = False

    @classmethod
    def from_settings(cls, _home: Path, settings: Mapping[str, Any]) -> Self:
        """Return the model for a cluster's settings and the console's home.  Raises ValidationError."""
        return cls(**settings)

    def connection_setting(self) -> str:
        """Return the dotted name of the setting by which the cluster is reached; "" for this machine."""
        return ""

    def exposures(self) -> frozenset[str]:
        """Return what jobs could do to people, in words of `quotas.models.single_person.Exposure`."""
        return frozenset()

    def network_lacks(self) -> tuple[str, ...]:
        """Return the names of what jobs' own networks lack on this machine, where jobs should have them."""
        return ()

    def user_ids(self, last: int) -> range:
        """Return the user ids of this machine under which jobs of people with numbers up to `last` run."""
        return range(last, last)


def problems_of(model: type[Settings], error: Exception) -> list[SettingProblem]:
    """Return the problems for which a model refused its values."""
    if isinstance(error, InvalidSettings):
        return list(error.problems)
    if not isinstance(error, ValidationError):
        return [SettingProblem("", "other", {"error": str(error)})]
    return [problem for each in error.errors(include_url=False) for problem in _problems(model, each)]


def _problems(model: type[Settings], error: Any) -> Iterator[SettingProblem]:
    loc, context, kind = error["loc"], error.get("ctx", {}), error["type"]
    name = ".".join(str(part) for part in loc if part != "[key]")
    raised = context.get("error")
    if isinstance(raised, InvalidSettings):
        for each in raised.problems:
            yield SettingProblem(name or each.name, each.code, each.params)
    elif kind == "unexpected_keyword_argument" and name == FORMER_STORAGE:
        yield SettingProblem(name, "became_mapping")
    elif kind == "unexpected_keyword_argument":
        known = _names_at(_schema(cast("Hashable", model)), loc[:-1])
        close = get_close_matches(str(loc[-1]), known, 1)
        yield SettingProblem(name, "unknown_but" if close else "unknown", {"suggestion": "".join(close)})
    elif kind in CODES:
        yield SettingProblem(name, CODES[kind])
    elif kind in ("literal_error", "enum"):
        expected = str(context["expected"]).replace("'' or ", "").replace("'', ", "").replace("'", "")
        yield SettingProblem(name, "choice", {"expected": expected})
    elif kind in ("greater_than_equal", "less_than_equal"):
        code, bound = ("too_small", "ge") if "ge" in context else ("too_large", "le")
        yield SettingProblem(name, code, {"bound": context[bound]})
    elif kind.endswith("_type"):
        yield SettingProblem(name, "kind", {"kind": KINDS.get(kind, kind.removesuffix("_type"))})
    else:
        yield SettingProblem(name, "other", {"error": raised or error["msg"]})


CODES: Final = {"missing": "missing", "string_pattern_mismatch": "characters"}
"""Codes of problems without parameters, by pydantic's words for them."""

KINDS: Final = {
    "bool_type": "true/false",
    "dataclass_type": "{…}",
    "dict_type": "{…}",
    "int_type": "123",
    "string_type": '"…"',
    "tuple_type": "[…]",
}
"""How JSON writes a value of each kind."""


# --- fields for a form -----------------------------------------------------------------------------------


class InputKind(StrEnum):
    """The kind of value that a setting has; JSON is any other than those before."""

    SWITCH = "switch"
    NUMBER = "number"
    TEXT = "text"
    CHOICE = "choice"
    LINES = "lines"
    MAPPING = "mapping"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class SettingField:
    """A setting for a form: its `path` has two parts for the field of an object.

    `numbers`: the values of the mapping are whole numbers.
    """

    path: tuple[str, ...]
    kind: InputKind
    default: Any = None
    choices: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None
    numbers: bool = False

    @property
    def name(self) -> str:
        """Return the dotted name."""
        return ".".join(self.path)


def fields_of(model: type[Settings], names: Sequence[str]) -> list[SettingField]:
    """Return the fields of a model that `names` has, in its order."""
    schema = _schema(cast("Hashable", model))  # a class is
    return [found for name in names for found in _fields(schema, schema["properties"][name], (name,))]


def _fields(
    schema: Mapping[str, Any], own: Mapping[str, Any], path: tuple[str, ...]
) -> Iterator[SettingField]:
    plain = _plain(schema, own)
    if "properties" in plain:
        for name, each in plain["properties"].items():
            yield from _fields(schema, each, (*path, name))
        return
    of = _plain(schema, plain.get("items") or plain.get("additionalProperties") or {}).get("type")
    nullable = any(each.get("type") == "null" for each in own.get("anyOf", ()))
    match plain.get("type"), of:
        case "boolean", _:
            kind = InputKind.SWITCH
        case "integer", _:
            kind = InputKind.NUMBER
        case "string", _:
            kind = InputKind.CHOICE if "enum" in plain else InputKind.TEXT
        case "array", "string":
            kind = InputKind.LINES
        case "object", ("string" | "integer"):
            kind = InputKind.MAPPING
        case _:
            kind = InputKind.JSON
    yield SettingField(
        path,
        kind,
        own.get("default"),
        (*([""] if nullable else []), *plain.get("enum", ())),
        plain.get("minimum"),
        plain.get("maximum"),
        numbers=of == "integer",
    )


@cache
def _schema(model: Any) -> dict[str, Any]:
    """Return the model's JSON schema, which nobody changes: to make it takes 60 ms."""
    return TypeAdapter(model).json_schema()


def _plain(schema: Mapping[str, Any], own: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema itself that stands behind a reference or an alternative to null."""
    first: Mapping[str, Any] = own.get("anyOf", [own])[0]
    name = first.get("$ref", "").rpartition("/")[2]
    found: Mapping[str, Any] = schema["$defs"][name] if name else first
    return found


def _names_at(schema: Mapping[str, Any], path: Sequence[str | int]) -> list[str]:
    """Return the names that the object at `path` may have."""
    at: Mapping[str, Any] = schema
    for part in path:
        at = _plain(schema, at.get("properties", {}).get(part) or at.get("additionalProperties") or {})
    return list(at.get("properties", {}))
