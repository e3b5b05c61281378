"""An AIHC `CreateJob` body, v2 or v1 → JobSpec."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from jobs.dialects import edit
from jobs.dialects.aihc import data_sources, keys, resources
from jobs.dialects.aihc.renderer import (
    FAULT_CONFIG,
    NO_AMOUNTS,
    SHAPE,
    UNITS,
    V1,
    V1_SPELLING,
    render_spec,
)
from jobs.dialects.aihc.resources import NamedAmounts
from jobs.dialects.argument_text import parse_arguments, set_argument
from jobs.dialects.base import Parsed
from jobs.dialects.commands import remark_on
from jobs.dialects.document import Document
from jobs.dialects.extras import Leftover, find_extras
from jobs.dialects.fields import AnyKey, Flag, Group
from jobs.dialects.findings import Findings
from jobs.dialects.key_spellings import KEPT, keep_written, spellings
from jobs.dialects.objects import (
    as_object,
    check_replicas,
    keep_leftovers,
    open_object,
    read_fields,
    read_image,
    read_login,
    share_variables,
    take_secrets,
)
from jobs.dialects.reading_cache import read_once
from jobs.dialects.record import kind_of
from jobs.dialects.request import Request, is_nothing
from jobs.dialects.source import read
from jobs.dialects.text_renderer import JsonObject
from jobs.dialects.variables import Variables, collect
from jobs.spec import (
    CompletionPolicy,
    FaultTolerance,
    Framework,
    JobSpec,
    RegistryAuth,
    Reservation,
    Resources,
    RoleSpec,
    Software,
    TensorBoard,
)

AIHC: Final = "AIHC"
_PERIOD: Final = re.compile(rf"(?P<count>[0-9]{{1,5}})(?P<unit>[{''.join(UNITS)}])", re.IGNORECASE)
_BCCL_REPLICAS: Final = 2
_BCCL_CARDS: Final = 8
_BCCL_GPUS: Final = re.compile(r"a800|hpas", re.IGNORECASE)


@read_once
def parse(document: Document) -> Parsed:
    """Read `document`; raises Refused with all problems at once."""
    source = read(document)
    findings = Findings(document.room)
    held = take_secrets(open_object(source, keys.PAGE), findings)
    job = BodyReader(as_object(held.value), findings)
    findings.refuse_if_any(source)
    spec = job.build()
    extras = job.extras(spec)
    _note_conditions(spec, job.request)
    return Parsed(spec, extras, findings.notes(source), held.secrets, edit.edit(document, held.edits))


# --- roles -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AihcRole:
    """One JobSpec, under its key of the map or as the only one, which is called Worker."""

    pointer: str
    name: str
    replicas: int
    command: str
    image: str
    amounts: NamedAmounts
    variables: Variables
    registry: RegistryAuth | None


def is_map(value: object) -> bool:
    """Tell whether `jobSpec` is a map of roles: each member that says something is one, under its name."""
    members = {key: inner for key, inner in as_object(value).items() if not is_nothing(inner)}
    return bool(members) and all(
        _role_name(key) and isinstance(inner, dict) for key, inner in members.items()
    )


def _role_name(key: str) -> str:
    return next((name for name in keys.ROLES if name.lower() == key.lower()), "")


def rules_for(value: object) -> tuple[AnyKey, ...]:
    """Return the table of a body whose `jobSpec` is `value`: for a map, one JobSpec's keys for each role."""
    if not is_map(value):
        return keys.JOB
    parts = tuple(
        Group(key=name, source=keys.PAGE, path="roles", help="", keys=keys.ROLE, aliases=(key,))
        for key in as_object(value)
        if (name := _role_name(key))
    )
    whole = replace(keys.JOB_SPEC, keys=parts)
    return tuple(whole if rule is keys.JOB_SPEC else rule for rule in keys.JOB)


def _role_requests(job: Request) -> Iterator[tuple[Request, str]]:
    value = job.value.get(keys.JOB_SPEC.key)
    where, key = job.at(keys.JOB_SPEC.key), keys.JOB_SPEC.key
    if value is None:
        job.findings.problem("required", where, keys.PAGE, key=key)
    elif not isinstance(value, dict):
        job.findings.problem("wrong_type", where, keys.PAGE, key=key, expected="object", got=kind_of(value))
    elif is_map(value):
        for name, inner in value.items():
            if not is_nothing(inner):
                yield Request(inner, f"{where}/{name}", job.findings, keys.ROLE).inspect(), _role_name(name)
    else:
        yield Request(value, where, job.findings, keys.ROLE).inspect(), keys.ROLES[0]


def _read_role(role: Request, name: str) -> AihcRole:
    image = read_image(role, keys.IMAGE, role.pointer)
    pairs = (
        (item.pointer, item.text(keys.ENV_NAME), item.value.get(keys.ENV_VALUE.key, ""))
        for item in role.requests(keys.ENVS)
    )
    return AihcRole(
        pointer=role.pointer,
        name=name,
        replicas=role.integer(keys.REPLICAS),
        command=role.text(keys.COMMAND_INSIDE),
        image=image,
        amounts=resources.read(role),
        variables=collect(pairs, role.findings),
        registry=read_login(role.group(keys.IMAGE_CONFIG), keys.PASSWORD, (keys.USERNAME,)),
    )


def decide_completion(replicas: Mapping[str, int]) -> dict[str, CompletionPolicy]:
    """Return the completion policy of each role, by its number of replicas.

    AIHC's page names no rule.  That of the open-source operator is applied, and noted: a chief decides, and
    beside parameter servers, which never end, the workers do.  Any failed replica fails the job.
    """
    decider = "Chief" if "Chief" in replicas and len(replicas) > 1 else None
    if decider is None and "PS" in replicas and "Worker" in replicas:
        decider = "Worker"
    return {
        name: CompletionPolicy(min_succeeded=count if name == decider else None)
        for name, count in replicas.items()
    }


# --- the whole body --------------------------------------------------------------------------------------


class BodyReader:
    """Every key of a body without secrets, read once; `build` is called when nothing was wrong."""

    def __init__(self, body: JsonObject, findings: Findings) -> None:
        job = self.request = Request(body, "", findings, keys.JOB).inspect()
        self._fields = {
            **read_fields(job, (keys.NAME, keys.QUEUE)),
            "framework": _read_framework(job),
        }
        self._command = job.text(keys.COMMAND)
        self._roles = tuple(_read_role(request, name) for request, name in _role_requests(job))
        self._policies = decide_completion({role.name: role.replicas for role in self._roles})
        priority = job.word_meaning(keys.PRIORITY)
        self._fields |= {
            "priority": int(priority) if priority else None,
            "tags": {
                item.text(keys.LABEL_KEY): item.text(keys.LABEL_VALUE) for item in job.requests(keys.LABELS)
            },
            "mounts": tuple(filter(None, map(data_sources.read, job.requests(keys.DATA_SOURCES)))),
            "software": Software(**read_fields(job, (keys.ENABLE_BCCL,))),
            "reserve_after": _read_retention(job),
        }
        self._config, self._fields["fault_tolerance"] = _read_fault_tolerance(job)
        board = job.group(keys.TENSORBOARD)
        rules = keys.ENABLE_TENSORBOARD, keys.LOG_PATH
        said = read_fields(board, rules)
        self._fields["tensorboard"] = TensorBoard(**said) if any(map(board.has, rules)) else None
        self._check()

    def build(self) -> JobSpec:
        """Return the JobSpec."""
        shared, secret = share_variables([role.variables for role in self._roles])
        return JobSpec(
            **self._fields,
            roles=tuple(
                RoleSpec(
                    name=role.name,
                    replicas=role.replicas,
                    command=self._command or role.command,
                    image=role.image,
                    resources=role.amounts.build(),
                    completion=self._policies[role.name],
                    env={name: value for name, value in role.variables.plain.items() if name not in shared},
                )
                for role in self._roles
            ),
            env=shared,
            secret_env=secret,
            registry_auth=next((role.registry for role in self._roles if role.registry), None),
        )

    def extras(self, spec: JobSpec) -> dict[str, object]:
        """Return what the body says beyond `spec`; what is kept for AIHC alone is noted."""
        body = self.request.raw
        rules = rules_for(body.get(keys.JOB_SPEC.key))
        extras = self._form(spec)
        said = render_spec(spec, extras)
        spelling = self._collect_spelling(keep_written(spellings(body, rules), said), said)
        if spelling:
            extras[KEPT] = spelling
        rest = [left for left in find_extras(body, said, rules, keys.NAMES) if not _is_said(left)]
        for left in rest:
            if left.name == keys.ALERTS and (alerts := keys.list_alerts(left.value)):
                extras[left.name] = left.value
                self.request.findings.note("alerts_told", left.pointer, items=", ".join(alerts))
        others = (left for left in rest if left.name not in extras)
        return extras | keep_leftovers(others, self.request.findings)

    def _form(self, spec: JobSpec) -> dict[str, object]:
        """Return the extras that tell which of several forms the body has."""
        extras: dict[str, object] = {V1: True} if self._is_v1() else {}
        if self._config:
            extras[FAULT_CONFIG] = self._config
        silent = [role.name for role in self._roles if role.amounts.is_empty]
        if silent:
            extras[NO_AMOUNTS] = silent
        has_map = is_map(self.request.raw.get(keys.JOB_SPEC.key))
        if has_map != is_map(render_spec(spec, extras)[keys.JOB_SPEC.key]):
            extras[SHAPE] = "map" if has_map else "one"
        return extras

    def _collect_spelling(self, spelling: dict[str, list[str]], said: JsonObject) -> dict[str, list[str]]:
        """Return the spelling to remember; of v1 only what is spelled as in v2."""
        if not self._is_v1():
            return spelling
        words = {*self.request.raw, *as_object(self.request.raw.get(keys.TENSORBOARD.key))}
        as_in_v2 = {key: [key] for key in V1_SPELLING if key not in spelling and key in words}
        every = {**spelling, **keep_written(as_in_v2, said)}
        return {key: used for key, used in every.items() if V1_SPELLING.get(key) != used}

    def _is_v1(self) -> bool:
        """Tell whether the command stands inside of jobSpec, and none outside, as in v1."""
        return not self._command and any(role.command for role in self._roles)

    def _check(self) -> None:
        """Tell what is wrong or worth noting about several keys together."""
        job, findings = self.request, self.request.findings
        where, key = job.at(keys.COMMAND.key), keys.COMMAND.key
        names = [role.name for role in self._roles]
        for role in self._roles:
            if names.count(role.name) > 1:
                findings.problem("role_twice", role.pointer, keys.PAGE, name=role.name)
            if self._command and role.command:
                findings.note("two_commands", f"{role.pointer}/{keys.COMMAND_INSIDE.key}", role=role.name)
        if not self._command and not all(role.command for role in self._roles):
            findings.problem("required", where, keys.PAGE, key=key)
        check_replicas((role.replicas for role in self._roles), job.at(keys.JOB_SPEC.key), findings)
        remark_on(self._command, where, findings)
        for role in self._roles:
            remark_on(role.command, f"{role.pointer}/{keys.COMMAND_INSIDE.key}", findings)
        for role in self._roles:
            if count := self._policies[role.name].min_succeeded:
                findings.note(
                    "completion_applied", role.pointer, role=role.name, count=count, job_type="TFJob"
                )


def _read_framework(job: Request) -> Framework | None:
    """Return the framework; one that only the newer page knows is noted."""
    meaning, key = job.word_meaning(keys.JOB_TYPE), keys.JOB_TYPE.key
    if meaning and meaning != Framework.PYTORCH:
        job.findings.note(
            "looser_rule",
            job.at(key),
            key=key,
            value=str(job.value[key]),
            applied=keys.NEWER_PAGE,
            stricter=keys.PAGE,
        )
    return Framework(meaning) if meaning else None


def _read_fault_tolerance(job: Request) -> tuple[list[str], FaultTolerance]:
    """Return the keys of v1's configuration that count, and the fault tolerance with them as arguments.

    An argument of v2 beside them comes first.
    """
    check = FaultTolerance(**read_fields(job, (keys.FAULT_TOLERANCE, keys.FAULT_TOLERANCE_ARGS)))
    config, said, text = job.group(keys.FAULT_CONFIG), [], check.arguments
    for rule, name in keys.FAULT_CONFIG_ARGUMENTS.items():
        if not config.has(rule) or name in parse_arguments(check.arguments):
            continue
        value = config.flag(rule) if isinstance(rule, Flag) else config.integer(rule)
        text = set_argument(text, name, str(value).lower())
        said.append(rule.key)
    return said, check.model_copy(update={"arguments": text})


def _read_retention(job: Request) -> Reservation | None:
    """Read how long the ended job is kept; nothing for none."""
    text, key = job.text(keys.RETENTION).strip(), keys.RETENTION.key
    if not text:
        return None
    match = _PERIOD.fullmatch(text)
    if match is None:
        job.findings.problem("not_a_period", job.at(key), keys.SDK, key=key, value=text[:60])
        return None
    seconds = int(match["count"]) * UNITS[match["unit"].lower()]
    return Reservation(seconds=seconds) if seconds else None


def _is_said(left: Leftover) -> bool:
    """Tell whether a leftover is a resource that a JobSpec holds under another name."""
    return left.name.rpartition("/")[0].endswith(f"/{keys.RESOURCES.key}") and resources.is_said(left.value)


# --- conditions ------------------------------------------------------------------------------------------


def _note_conditions(spec: JobSpec, job: Request) -> None:
    """Note what BCCL and RDMA need at AIHC and the job lacks; a job that runs elsewhere needs none of it."""
    if spec.software.bccl:
        _note_lacking(job, keys.ENABLE_BCCL.key, keys.ENABLE_BCCL.key, _lacks_for_bccl(spec))
    without = [role.name for role in spec.roles if role.resources.rdma and not role.resources.gpus]
    if without and any(role.resources != Resources(rdma=True) for role in spec.roles):
        _note_lacking(job, keys.JOB_SPEC.key, keys.ENABLE_RDMA.key, [f"GPU ({name})" for name in without])


def _lacks_for_bccl(spec: JobSpec) -> list[str]:
    """Return the page's conditions that are not met: replicas, machines of 8 cards, RDMA, A800 or HPAS."""
    every = [role.resources for role in spec.roles]
    conditions = (
        (f"replicas ≥ {_BCCL_REPLICAS}", spec.replicas >= _BCCL_REPLICAS),
        (f"{_BCCL_CARDS} GPUs", all(has.gpus == _BCCL_CARDS for has in every)),
        ("enableRDMA", all(has.rdma for has in every)),
        ("A800/HPAS", all(_BCCL_GPUS.search(has.gpu_type) for has in every)),
    )
    return [condition for condition, is_met in conditions if not is_met]


def _note_lacking(job: Request, at: str, key: str, lacking: list[str]) -> None:
    if lacking:
        every = ", ".join(lacking)
        job.findings.note(
            "condition_unmet", job.at(at), key=key, lacking=every, target=AIHC, source=keys.PAGE
        )
