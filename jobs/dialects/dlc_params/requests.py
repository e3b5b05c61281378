"""A parameter file as the `CreateJob` request that the command line would send.

What is found wrong with the request is told of the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.dialects import pairs
from jobs.dialects.base import Fix
from jobs.dialects.dlc_params import values
from jobs.dialects.dlc_params.keys import BY_KEY, PARAMS, ROLES, Param, Shape
from jobs.dialects.findings import Findings
from jobs.dialects.rendering import JsonObject
from jobs.dialects.spans import split

_TRUTH: Final = {"true": True, "false": False}
_ROLE_KEYS: Final = {
    param.key: kind
    for prefix, (kind, count) in ROLES.items()
    for param in PARAMS
    if param.to.startswith(f"/JobSpecs/{kind}/")
}


class Translated:
    """The request made of a file's `values`, and the way from its pointers back to the file's keys."""

    def __init__(self, given: Mapping[str, str], job_type: str) -> None:
        self.value: JsonObject = {"JobType": job_type, "JobMaxRunningTimeMinutes": 0}
        self._given = given
        self._roles = _roles_there(given)
        self._key_of: dict[str, str] = {param.to: param.key for param in reversed(PARAMS) if param.to}
        if self._roles:
            self.value["JobSpecs"] = [{"Type": kind} for kind in self._roles]
        for param in PARAMS:  # datasets before places, however the file orders them
            if param.key in given and param.to:
                self._take(param, given[param.key])

    def key_of(self, pointer: str) -> str:
        """The key that a pointer of the request is about."""
        tokens = split(pointer)
        if len(tokens) == 1 and tokens[0] in self._given:
            return tokens[0]
        while tokens:
            found = self._key_of.get("/" + "/".join(tokens)) or self._key_of.get(self._named(tokens))
            if found:
                return found
            tokens.pop()
        return ""

    def _named(self, tokens: list[str]) -> str:
        """The pointer with the role's type for its index."""
        if tokens[0] != "JobSpecs":
            return ""
        index = int(tokens[1]) if len(tokens) > 1 and tokens[1].isdigit() else 0
        kind = self._roles[index] if index < len(self._roles) else "Worker"
        return "/".join(["", "JobSpecs", kind, *(tokens[2:] or ["PodCount"])])

    def _take(self, param: Param, text: str) -> None:
        """Put one value where it belongs."""
        kind = _ROLE_KEYS.get(param.key)
        tokens = split(param.to)
        if kind is None:
            self._put(self.value, tokens, param, text)
        elif kind in self._roles:
            roles = self.value["JobSpecs"]
            assert isinstance(roles, list)
            self._put(roles[self._roles.index(kind)], tokens[2:], param, text)

    def _put(self, where: JsonObject, tokens: list[str], param: Param, text: str) -> None:
        for token in tokens[:-1]:
            inner = where.setdefault(token, {})
            assert isinstance(inner, dict)
            where = inner
        if param.shape in (Shape.IDS, Shape.MOUNTS):
            sources = where.setdefault(tokens[-1], [])
            assert isinstance(sources, list)
            new = _value(param, text)
            assert isinstance(new, list)
            first = len(sources)
            sources.extend(new)
            self._key_of |= {f"{param.to}/{first + index}": param.key for index in range(len(new))}
            return
        if param.shape is Shape.AIMASTER and text:
            where["EnableErrorMonitoringInAIMaster"] = True
        if text or param.shape is not Shape.NUMBER:
            where[tokens[-1]] = _value(param, text)


def _roles_there(given: Mapping[str, str]) -> list[str]:
    """The types of the roles that there are, in the order of the file."""
    absent = {
        kind for kind, count in ROLES.values() if given.get(count, "1").strip().lower() in {"0", "false", ""}
    }
    kinds = dict.fromkeys(_ROLE_KEYS[key] for key in given if key in _ROLE_KEYS)
    return [kind for kind in kinds if kind not in absent]


def _value(param: Param, text: str) -> object:
    """The value as a request has it; what can't be read stays text, and is told by the request's rules."""
    match param.shape:
        case Shape.NUMBER:
            return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else text
        case Shape.FLAG:
            meant = _TRUTH.get(text.lower())
            return int(meant) if meant is not None else _value(BY_KEY["workers"], text)
        case Shape.LIST:
            return values.words(text)
        case Shape.PAIRS:
            return pairs.read(text)
        case Shape.IDS:
            return [{"DataSourceId": name} for name in values.words(text)]
        case Shape.MOUNTS:
            return values.mounts(text)
        case Shape.COMMAND:
            return values.command(text)
        case Shape.TEXT | Shape.AIMASTER:
            return text


_CALLED: Final = {split(param.to)[-1]: param.key for param in reversed(PARAMS) if param.to}


class TranslatedFindings(Findings):
    """Findings about a request, told of the file's keys."""

    def __init__(self, request: Translated) -> None:
        super().__init__()
        self._request = request

    def problem(
        self, code: str, pointer: str, source: str, fix: Fix | None = None, **params: str | float | None
    ) -> None:
        """See `Findings`."""
        key = self._request.key_of(pointer)
        super().problem(code, _pointer(key), source, self._fix(fix), **self._called(key, params))

    def note(self, code: str, pointer: str, fix: Fix | None = None, **params: str | float | None) -> None:
        """See `Findings`."""
        key = self._request.key_of(pointer)
        super().note(code, _pointer(key), self._fix(fix), **self._called(key, params))

    def _fix(self, fix: Fix | None) -> Fix | None:
        """The fix in the file, where the key's value is what is to be changed."""
        if fix is None:
            return None
        key = self._request.key_of(fix.pointer)
        if fix.key is not None:
            return Fix(_pointer(key), key=fix.key) if fix.pointer == _pointer(key) else None
        param = BY_KEY.get(key)
        scalar = param and param.shape in (Shape.TEXT, Shape.NUMBER, Shape.COMMAND, Shape.AIMASTER)
        if not param or not scalar or split(param.to)[-1] != split(fix.pointer)[-1]:
            return None
        if fix.value is None:
            return Fix(_pointer(param.key))
        text = str(fix.value)
        return Fix(_pointer(param.key), values.written_command(text, " \t"))

    def _called(self, key: str, params: Mapping[str, str | float | None]) -> dict[str, str | float | None]:
        """Parameters that name keys, in the file's words."""
        named = {name: _CALLED.get(str(params[name]), params[name]) for name in ("other",) if name in params}
        return {**params, **named, **({"key": key} if key and "key" in params else {})}


def _pointer(key: str) -> str:
    return f"/{key}" if key else ""
