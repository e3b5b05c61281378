"""Operations of vendors' APIs as rows: name, address, parameters, and how far each is supported."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final, TypeAlias

from django.http import Http404, HttpRequest, HttpResponseBase

from jobs.api.native.auth import Caller
from jobs.models import Job
from jobs.submission.access import find_job
from quotas.access import Verb
from quotas.models import User

JsonObject: TypeAlias = dict[str, Any]


class Support(Enum):
    """How far an operation or a parameter is supported; the note beside it says what is not."""

    FULL = "answered"
    PARTIAL = "answered in part"
    REFUSED = "refused"
    IGNORED = "accepted without effect"


class Location(Enum):
    """The part of a request that has a parameter."""

    QUERY = "query"
    BODY = "body"
    PATH = "path"


class Kind(Enum):
    """The type of a parameter's value."""

    TEXT = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    TIME = "time"
    OBJECT = "object"
    LIST = "list"
    MAP = "map of strings"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an operation.

    `choices` are the values of a text, `fields` those of an object or of the elements of a list, `element`
    the type of a list's elements without fields.  Numbers are bounded by `least` and `most`.  A null is
    absent.
    """

    name: str
    kind: Kind = Kind.TEXT
    location: Location = Location.QUERY
    required: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    fields: tuple[Parameter, ...] = ()
    element: Kind = Kind.ANY
    support: Support = Support.FULL
    note: str = ""
    since: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation: its address is a Django route, its `scope` one of `quotas.accounts.tokens.SCOPES`.

    An empty scope needs no authentication: the view takes care of it.  Whatever needs more than `read`
    changes something.  `format` is the dialect whose keys are the fields of the body.  `view` is None for a
    refused operation, and `note` then says why.  `since` is the client's release that brought it.
    """

    name: str
    method: str
    path: str
    view: Callable[[Call], JsonObject | HttpResponseBase] | None = None
    scope: str = "read"
    parameters: tuple[Parameter, ...] = ()
    format: str = ""
    support: Support = Support.FULL
    note: str = ""
    since: str = ""
    status: int = 200


@dataclass(frozen=True, slots=True)
class Call:
    """A request for an operation, authenticated and with checked values.

    `values` has every parameter of the operation by its name, with its default where it is absent; `text` is
    the body as it came.
    """

    request: HttpRequest
    operation: Operation
    caller: Caller | None
    values: Mapping[str, Any]
    text: str
    request_id: str

    @property
    def person(self) -> User:
        """Return whoever calls; not for operations without authentication."""
        assert self.caller is not None
        return self.caller.user

    def allows(self, scope: str) -> bool:
        """Tell whether the caller came with that scope."""
        return self.caller is not None and (self.caller.scopes is None or scope in self.caller.scopes)

    def has_scope_to_read(self, job: Job) -> bool:
        """Tell whether the caller's key suffices for a job; for another's private one it needs `admin`."""
        return job.owner_id == self.person.pk or job.is_public or self.allows("admin")

    def find_job(self, public_id: str, verb: Verb) -> Job:
        """Return a job for `verb`.  Raises Http404, PermissionDenied or MissingScopeError.

        A right that comes from managing a workspace, rather than from owning the job, needs `admin` too.
        """
        if not public_id:
            raise Http404
        job = find_job(self.person, public_id, verb)
        mine = job.owner_id == self.person.pk or (verb is Verb.READ and job.is_public)
        if verb is not Verb.LIST and not mine and not self.allows("admin"):
            raise MissingScopeError("admin")
        return job


class MissingScopeError(Exception):
    """The caller's key or token lacks a scope."""

    def __init__(self, scope: str) -> None:
        super().__init__(scope)
        self.scope = scope


@dataclass(frozen=True, slots=True)
class WrongValue:
    """A parameter that is missing or wrong: its path (`JobSpecs[0].PodCount`) and what it should be."""

    path: str
    expected: str
    missing: bool = False
    value: Any = field(default=None, repr=False)


class InvalidParameters(Exception):
    """Parameters are missing or wrong; `wrong` has all of them."""

    def __init__(self, wrong: Iterable[WrongValue]) -> None:
        self.wrong = tuple(wrong)
        super().__init__(", ".join(each.path for each in self.wrong))


class ExpectedError(ValueError):
    """A value is not of its type; `str` says what is expected."""


LONGEST_TEXT: Final = 65_536
"""Characters of a text parameter."""

_LARGEST: Final = 2**53


def read_values(
    parameters: Iterable[Parameter],
    sources: Mapping[Location, Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the checked value of each parameter.  Raises InvalidParameters with all that is wrong.

    Numbers and booleans may be texts, as they are in a query; unknown names are ignored, as the vendors do.
    """
    wrong: list[WrongValue] = []
    values = {
        each.name: _read_one(each, sources.get(each.location, {}), each.name, wrong) for each in parameters
    }
    if wrong:
        raise InvalidParameters(wrong)
    return values


def _read_one(parameter: Parameter, source: Mapping[str, Any], path: str, wrong: list[WrongValue]) -> Any:
    value = source.get(parameter.name)
    if value is None or (value == "" and parameter.location is Location.QUERY):
        if parameter.required:
            wrong.append(WrongValue(path, parameter.kind.value, missing=True))
        return parameter.default
    return _check(parameter, value, path, wrong)


def _check(parameter: Parameter, value: Any, path: str, wrong: list[WrongValue]) -> Any:
    """Return the value in its type; adds to `wrong` what it is not."""
    if parameter.kind is Kind.LIST:
        return _check_list(parameter, value, path, wrong)
    if parameter.kind is Kind.OBJECT:
        if not isinstance(value, dict):
            wrong.append(WrongValue(path, "object", value=value))
            return parameter.default
        if not parameter.fields:
            return value
        return {each.name: _read_one(each, value, f"{path}.{each.name}", wrong) for each in parameter.fields}
    try:
        checked = _READERS[parameter.kind](value)
        if parameter.choices and checked not in parameter.choices:
            raise ExpectedError(" | ".join(parameter.choices))
        if parameter.least is not None and checked < parameter.least:
            raise ExpectedError(f"{parameter.kind.value} of at least {parameter.least:g}")
        if parameter.most is not None and checked > parameter.most:
            raise ExpectedError(f"{parameter.kind.value} of at most {parameter.most:g}")
    except (ValueError, TypeError, OverflowError) as error:
        wrong.append(WrongValue(path, str(error) or parameter.kind.value, value=value))
        return parameter.default
    return checked


def _check_list(parameter: Parameter, value: Any, path: str, wrong: list[WrongValue]) -> Any:
    if not isinstance(value, list):
        wrong.append(WrongValue(path, "list", value=value))
        return parameter.default
    kind = Kind.OBJECT if parameter.fields else parameter.element
    element = Parameter(parameter.name, kind, choices=parameter.choices, fields=parameter.fields)
    return [_check(element, each, f"{path}[{index}]", wrong) for index, each in enumerate(value)]


def _read_text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT or "\0" in value:
        raise ExpectedError("string")
    value.encode()  # half of a surrogate pair is a ValueError too
    return value


def _read_integer(value: Any) -> int:
    is_text = isinstance(value, str) and len(value) < 20 and value.removeprefix("-").isdecimal()
    if isinstance(value, bool) or not (isinstance(value, int) or is_text):
        raise ExpectedError("integer")
    number = int(value)
    if abs(number) > _LARGEST:
        raise ExpectedError("integer")
    return number


def _read_number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ExpectedError("number")
    try:
        number = float(value)
    except ValueError:
        raise ExpectedError("number") from None
    if not abs(number) <= _LARGEST:
        raise ExpectedError("number")
    return number


def _read_boolean(value: Any) -> bool:
    word = str(value).lower() if isinstance(value, bool | str) else ""
    if word not in {"true", "false"}:
        raise ExpectedError("boolean")
    return word == "true"


def _read_time(value: Any) -> datetime:
    """Return a time of ISO 8601 in UTC, which it is too where it names no zone."""
    try:
        moment = datetime.fromisoformat(_read_text(value).strip())
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise ExpectedError("time as 2020-11-08T16:00:00Z") from None


def render_time(moment: datetime | None) -> str:
    """Return a time in UTC to the second, as several vendors write it; "" for none."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else ""


def _read_map(value: Any) -> dict[str, str]:
    """Return a map of texts; a text is read as JSON, as it is in a query."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise ExpectedError("map of strings") from None
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise ExpectedError("map of strings")
    for key, each in value.items():
        _read_text(key)
        _read_text(each)
    return value


def _read_any(value: Any) -> Any:
    return value


_READERS: Final[Mapping[Kind, Callable[[Any], Any]]] = {
    Kind.TEXT: _read_text,
    Kind.INTEGER: _read_integer,
    Kind.NUMBER: _read_number,
    Kind.BOOLEAN: _read_boolean,
    Kind.TIME: _read_time,
    Kind.MAP: _read_map,
    Kind.ANY: _read_any,
}
