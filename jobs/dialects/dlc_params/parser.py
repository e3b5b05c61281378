"""A parameter file of the `dlc` command line → JobSpec.

The file is read as the `CreateJob` request that the command line would send; what is found wrong with the
request is told of the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from jobs.dialects import placeholders
from jobs.dialects.base import Fix, Parsed
from jobs.dialects.dlc import keys as dlc
from jobs.dialects.dlc.conditions import note_limits
from jobs.dialects.dlc.parser import RequestReader
from jobs.dialects.dlc_params import shapes
from jobs.dialects.dlc_params.job_type import guess_job_type
from jobs.dialects.dlc_params.keys import BY_KEY, KNOWN, PARAMS, ROLES, Param
from jobs.dialects.dlc_params.lines import read, splice
from jobs.dialects.dlc_params.renderer import JOB_TYPE, flatten
from jobs.dialects.document import Document
from jobs.dialects.findings import Findings
from jobs.dialects.objects import as_list, as_object
from jobs.dialects.reading_cache import read_once
from jobs.dialects.record import Record
from jobs.dialects.secret_extraction import Withheld, withhold
from jobs.dialects.spans import split
from jobs.dialects.text_renderer import JsonObject

_ROLE_KEYS: Final = {
    param.key: kind
    for prefix, (kind, count) in ROLES.items()
    for param in PARAMS
    if param.to.startswith(f"/JobSpecs/{kind}/")
}


@read_once
def parse(document: Document) -> Parsed:
    """Read `document`; raises Refused with all problems at once."""
    lines = read(document, KNOWN)
    given = lines.values
    job_type, why = guess_job_type(given, (comment for _offset, comment in lines.comments))
    request = TranslatedRequest(given, job_type)
    findings = TranslatedFindings(request)
    if why != "comment":
        findings.note("job_type_guessed", "", job_type=job_type, why=why)
    held = withhold(request.value, dlc.SECRET_KEYS, dlc.VARIABLES)
    safe = dict(_without_secrets(given, request, held, findings))
    job = RequestReader(held.value, findings)
    findings.refuse_if_any(lines)
    spec = job.build()
    note_limits(spec, job.value, findings)
    return Parsed(
        spec=spec,
        extras={JOB_TYPE: job_type, **_extras({**given, **safe}, findings)},
        notes=findings.notes(lines),
        secrets=held.secrets,
        text=splice(lines.text, lines.set_values(safe)),
    )


def _without_secrets(
    given: Mapping[str, str], request: TranslatedRequest, held: Withheld, findings: Findings
) -> Iterator[tuple[str, str]]:
    """Yield keys with placeholders for the secrets in their values; those of unknown keys go to `held`."""
    flat = flatten(as_object(held.value))
    for pointer, name in held.found.items():
        findings.note("secret_taken", pointer, key=name, name=name)
    for change in held.edits:
        key = request.key_of(change.pointer)
        yield key, flat.get(key, str(change.value))  # a key of a role holds one text alone
    for key, value in given.items():
        if key in BY_KEY or not placeholders.looks_secret(key) or placeholders.reference(value) or not value:
            continue
        held.secrets[key] = value
        findings.note("secret_taken", f"/{key}", key=key, name=key)
        yield key, placeholders.placeholder(key)


def _extras(given: Mapping[str, str], findings: Findings) -> dict[str, object]:
    """Return the keys that mean nothing in a JobSpec; those of the command line are noted as kept."""
    strangers = Record(given, "", findings).unknown(KNOWN)
    for key, value in given.items():
        param = BY_KEY.get(key)
        if param and not param.to and value:
            findings.note("kept_unused", f"/{key}", key=key)
            strangers[key] = value
    return {f"/{key}": value for key, value in strangers.items()}


class TranslatedRequest:
    """The request made of a file's values, and the way from its pointers back to the file's keys."""

    def __init__(self, given: Mapping[str, str], job_type: str) -> None:
        self.value: JsonObject = {"JobType": job_type, "JobMaxRunningTimeMinutes": 0}
        self._given = given
        self._roles = _roles_of(given)
        self._key_of: dict[str, str] = {param.to: param.key for param in reversed(PARAMS) if param.to}
        if self._roles:
            self.value["JobSpecs"] = [{"Type": kind} for kind in self._roles]
        for param in PARAMS:  # datasets before places, however the file orders them
            if param.key in given and param.to:
                self._insert(param, given[param.key])

    def key_of(self, pointer: str) -> str:
        """Return the key that a pointer of the request is about."""
        tokens = split(pointer)
        if len(tokens) == 1 and tokens[0] in self._given:
            return tokens[0]
        while tokens:
            found = self._key_of.get("/" + "/".join(tokens)) or self._key_of.get(self._by_type(tokens))
            if found:
                return found
            tokens.pop()
        return ""

    def _by_type(self, tokens: list[str]) -> str:
        """Return the pointer with the role's type for its index."""
        if tokens[0] != "JobSpecs":
            return ""
        index = int(tokens[1]) if len(tokens) > 1 and tokens[1].isdigit() else 0
        kind = self._roles[index] if index < len(self._roles) else "Worker"
        return "/".join(["", "JobSpecs", kind, *(tokens[2:] or ["PodCount"])])

    def _insert(self, param: Param, text: str) -> None:
        """Put one value where it belongs; those of roles that there are not go nowhere."""
        kind, where = _ROLE_KEYS.get(param.key), self.value
        *way, last = split(param.to)
        if kind is not None:
            if kind not in self._roles:
                return
            where, way = as_list(self.value["JobSpecs"])[self._roles.index(kind)], way[2:]
        for token in way:
            where = as_object(where.setdefault(token, {}))
        value = param.shape.read(text)
        if param.shape in (shapes.IDS, shapes.MOUNTS):
            sources = as_list(where.setdefault(last, []))
            first = len(sources)
            sources += value
            self._key_of |= {f"{param.to}/{index}": param.key for index in range(first, len(sources))}
            return
        if param.shape is shapes.AIMASTER and text:
            where["EnableErrorMonitoringInAIMaster"] = True
        if text or param.shape is not shapes.NUMBER:
            where[last] = value


def _roles_of(given: Mapping[str, str]) -> list[str]:
    """Return the types of the roles that there are, in the order of the file."""
    absent = {
        kind for kind, count in ROLES.values() if given.get(count, "1").strip().lower() in {"0", "false", ""}
    }
    kinds = dict.fromkeys(_ROLE_KEYS[key] for key in given if key in _ROLE_KEYS)
    return [kind for kind in kinds if kind not in absent]


_KEY_OF_NAME: Final = {split(param.to)[-1]: param.key for param in reversed(PARAMS) if param.to}


class TranslatedFindings(Findings):
    """Findings about a request, as findings about the file's keys."""

    def __init__(self, request: TranslatedRequest) -> None:
        super().__init__()
        self._request = request

    def problem(
        self, code: str, pointer: str, source: str, fix: Fix | None = None, **params: str | float | None
    ) -> None:
        """See `Findings`."""
        key = self._request.key_of(pointer)
        super().problem(code, _pointer(key), source, self._fix(fix), **self._rename(key, params))

    def note(self, code: str, pointer: str, fix: Fix | None = None, **params: str | float | None) -> None:
        """See `Findings`."""
        key = self._request.key_of(pointer)
        super().note(code, _pointer(key), self._fix(fix), **self._rename(key, params))

    def _fix(self, fix: Fix | None) -> Fix | None:
        """Return the fix in the file, where the key's value is what is to be changed."""
        if fix is None:
            return None
        key = self._request.key_of(fix.pointer)
        if fix.key is not None:
            return Fix(_pointer(key), key=fix.key) if fix.pointer == _pointer(key) else None
        param = BY_KEY.get(key)
        if not param or not param.shape.scalar or split(param.to)[-1] != split(fix.pointer)[-1]:
            return None
        if fix.value is None:
            return Fix(_pointer(param.key))
        return Fix(_pointer(param.key), shapes.write_command(str(fix.value), " \t"))

    def _rename(self, key: str, params: Mapping[str, str | float | None]) -> dict[str, str | float | None]:
        """Return parameters with the file's names of keys."""
        named = {**params, **({"key": key} if key and "key" in params else {})}
        return named | {
            name: _KEY_OF_NAME.get(str(named[name]), named[name]) for name in {"other"} & named.keys()
        }


def _pointer(key: str) -> str:
    return f"/{key}" if key else ""
