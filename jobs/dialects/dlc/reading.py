"""A `CreateJob` request → JobSpec."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from jobs.dialects import edit
from jobs.dialects.base import Parsed, Problem, Refused
from jobs.dialects.commands import remark_on
from jobs.dialects.dlc import elsewhere, keys, limits, places, roles, settings
from jobs.dialects.dlc.completion import ALL_END, Part, Success, applied
from jobs.dialects.dlc.document import CREDENTIALS, CUSTOM_ENVS, UNLIMITED_BY_SILENCE, credentials, plain
from jobs.dialects.dlc.job_types import BY_NAME, with_known_types
from jobs.dialects.document import Document
from jobs.dialects.fields import CONSOLE, MOST_REPLICAS, Text
from jobs.dialects.findings import Findings
from jobs.dialects.leftovers import leftovers
from jobs.dialects.ours import kept
from jobs.dialects.ours import reading as ours
from jobs.dialects.ours.correcting import corrected
from jobs.dialects.ours.keys import NAME
from jobs.dialects.ours.reading import Said
from jobs.dialects.reading_cache import read_once
from jobs.dialects.record import kind_of
from jobs.dialects.rendering import JsonObject
from jobs.dialects.request import Request, is_nothing
from jobs.dialects.source import Source, read
from jobs.dialects.spans import escape, split
from jobs.dialects.spelling import KEPT, of_what_is_said, spellings
from jobs.dialects.variables import collect, is_usable
from jobs.dialects.withhold import Withheld, withhold
from jobs.spec import CompletionPolicy, JobSpec, RegistryAuth, TaskRole, Visibility

_BLANK_TO_FILL: Final = re.compile(r"<[^<>]*>")
"""What the pages write where an id of one's own belongs."""


@read_once
def parse(document: Document) -> Parsed:
    """Read `document`; raises Refused with all problems at once."""
    source = read(document)
    findings = Findings(document.room)
    held = withheld(_object(source), findings)
    job = Job(held.value, findings)
    findings.refuse_if_any(source)
    without = job.build()
    said = job.ours(without)
    spec = corrected(without, said.patch, f"/{NAME}", findings)
    findings.refuse_if_any(source)
    extras = extras_of(job.value, without, findings)
    if spec.framework is None:
        extras |= _job_type_kept(job.value)
    if spec.time_limit_s is not None:
        extras.pop(UNLIMITED_BY_SILENCE, None)
    extras |= _ours_kept(said, without, spec, extras)
    elsewhere.remark(spec, job.value, findings)
    return Parsed(spec, extras, findings.notes(source), held.secrets, edit.edit(document, held.edits))


def withheld(value: Mapping[str, object], findings: Findings) -> Withheld:
    """The request without its secrets, each noted."""
    held = withhold(value, keys.SECRET_KEYS, keys.VARIABLES)
    for pointer, name in held.found.items():
        findings.note("secret_taken", pointer, key=split(pointer)[-1], name=name)
    return held


def _object(source: Source) -> dict[str, object]:
    if isinstance(source.value, dict):
        return source.value
    line, column = source.position("")
    params = {"key": "", "expected": "object", "got": kind_of(source.value)}
    raise Refused((Problem("wrong_type", "", line, column, params, source=limits.PAGE),))


class Job:
    """Every key of a request without secrets, read once; `build` is called when nothing was wrong."""

    def __init__(self, value: object, findings: Findings) -> None:
        self.value: Mapping[str, object] = value if isinstance(value, dict) else {}
        job = self._job = Request(self.value, "", findings, keys.JOB).inspect()
        self._type = BY_NAME.get(job.choice(keys.JOB_TYPE))
        self._texts = {rule.key: job.text(rule) for rule in (keys.DISPLAY_NAME, keys.DESCRIPTION)}
        self._texts |= {rule.key: _filled(job, rule) for rule in (keys.WORKSPACE_ID, keys.RESOURCE_ID)}
        self._command = job.text(keys.USER_COMMAND)
        self._roles = self._read_roles()
        self._mounts, self._code = places.mounts(job), places.code(job)
        self._network, self._requirements = places.network(job), places.requirements(job)
        self._settings = settings.read(job, self._type.name if self._type else "")
        self._variables = collect(_variables(job), findings)
        self._instance_role = settings.instance_role(job)
        self._priority = job.optional_integer(keys.PRIORITY)
        self._minutes = job.optional_integer(keys.MAX_RUNNING)
        self._visibility = Visibility(job.meaning(keys.ACCESSIBILITY) or Visibility.PRIVATE)
        self._completions = self._decide(job.choice(keys.SUCCESS_POLICY))
        self._remarks()

    def ours(self, without: JobSpec) -> Said:
        """What our own object says; `without` it the request says that."""
        if NAME not in self.value:
            return Said()
        names = [role.name for role in without.roles]
        return ours.read(self.value[NAME], f"/{NAME}", self._job.findings, names)

    def build(self) -> JobSpec:
        """The JobSpec, as far as DLC's own keys say it."""
        has, texts = self._settings, self._texts
        framework = self._type.framework if self._type else None
        return JobSpec(
            name=texts[keys.DISPLAY_NAME.key],
            description=texts[keys.DESCRIPTION.key],
            tags=dict(has.tags),
            framework=framework,
            roles=tuple(
                self._role(role, completion)
                for role, completion in zip(self._roles, self._completions, strict=True)
            ),
            env=self._variables.plain,
            secret_env=self._variables.secret,
            registry_auth=self._registry(),
            mounts=self._mounts,
            code=self._code,
            requirements=self._requirements,
            workspace=texts[keys.WORKSPACE_ID.key],
            quota=texts[keys.RESOURCE_ID.key],
            priority=self._priority,
            time_limit_s=self._minutes * 60 if self._minutes else None,
            grace_s=has.grace_s,
            idle=has.idle,
            cpu_affinity=has.cpu_affinity,
            reserve_after=has.reserve_after,
            fault_tolerance=has.fault_tolerance,
            sanity_check=has.sanity_check,
            network=self._network,
            instance_role=self._instance_role,
            visibility=self._visibility,
            framework_options=dict(has.options),
        )

    def _role(self, role: roles.Role, completion: CompletionPolicy) -> TaskRole:
        return TaskRole(
            name=role.type,
            replicas=role.replicas,
            command=role.command or self._command,
            image=role.image,
            resources=role.amounts(rdma=self._settings.rdma),
            ports=role.ports,
            completion=completion,
            bid=role.bid,
            nodes=role.nodes,
        )

    def _read_roles(self) -> tuple[roles.Role, ...]:
        """All roles; each type once."""
        job, seen, found = self._job, set[str](), []
        for record in job.requests(keys.JOB_SPECS):
            role = roles.read(record, self._type, has_quota=bool(self._texts[keys.RESOURCE_ID.key]))
            if role.type and role.type in seen:
                job.findings.problem("role_twice", record.pointer, limits.PAGE, name=role.type)
            seen.add(role.type)
            found.append(role)
        if not self._command and not all(role.command for role in found):
            where = job.at(keys.USER_COMMAND.key)
            job.findings.problem("required", where, limits.PAGE, key=keys.USER_COMMAND.key)
        total = sum(role.replicas for role in found)
        if total > MOST_REPLICAS:
            where = job.at(keys.JOB_SPECS.key)
            job.findings.problem("too_many_replicas", where, CONSOLE, count=total, most=MOST_REPLICAS)
        return tuple(found)

    def _decide(self, policy: str) -> tuple[CompletionPolicy, ...]:
        """When each role decides the job, and a note on what was applied."""
        if self._type is None:
            return (ALL_END,) * len(self._roles)
        parts = tuple(Part(role.type, role.replicas, role.is_chief, role.considered) for role in self._roles)
        completions = applied(self._type, Success(policy, parts))
        for role, completion in zip(self._roles, completions, strict=True):
            if completion != ALL_END:
                self._job.findings.note(
                    "completion_applied",
                    role.pointer,
                    role=role.type,
                    count=completion.min_succeeded,
                    job_type=self._type.name,
                )
        return completions

    def _registry(self) -> RegistryAuth | None:
        given = [role.registry for role in self._roles if role.registry]
        return given[0] if given else None

    def _remarks(self) -> None:
        """What is accepted, and still worth a word."""
        findings = self._job.findings
        if len({str(role.registry) for role in self._roles if role.registry}) > 1:
            findings.note("registries_differ", self._job.at(keys.JOB_SPECS.key))
        for pointer, command in self._commands():
            remark_on(command, pointer, findings)

    def _commands(self) -> Iterator[tuple[str, str]]:
        """Every command with its pointer."""
        yield self._job.at(keys.USER_COMMAND.key), self._command
        for role in self._roles:
            yield f"{role.pointer}/{keys.USER_COMMAND.key}", role.command


def _filled(job: Request, rule: Text) -> str:
    """An id; what the pages write in its place is a blank that nobody has filled in."""
    text = job.text(rule)
    if not _BLANK_TO_FILL.fullmatch(text.strip()):
        return text
    job.findings.note("blank_to_fill", job.at(rule.key), key=rule.key)
    return ""


def extras_of(value: Mapping[str, object], spec: JobSpec, findings: Findings) -> dict[str, object]:
    """What `value` says beyond `spec`; what is kept for DLC alone is noted."""
    extras = _remembered(value, spec)
    value = {key: held for key, held in value.items() if key != NAME}
    said = plain(spec, extras)
    spelling = of_what_is_said(spellings(value, keys.JOB), said)
    if spelling:
        extras[KEPT] = spelling
    for left in leftovers(with_known_types(value), said, keys.JOB, keys.NAMES):
        extras[left.name] = left.value
        if left.known and left.value:
            findings.note("kept_unused", left.pointer, key=split(left.pointer)[-1])
    return extras


def native(request: JsonObject) -> JobSpec | None:
    """What DLC's own keys of a request without secrets say; None when they can't be accepted."""
    findings = Findings()
    job = Job(request, findings)
    return None if findings.any_problem else job.build()


def _ours_kept(said: Said, there: JobSpec, spec: JobSpec, extras: Mapping[str, object]) -> dict[str, object]:
    """What is remembered of our own object, and of the types under which the roles stand."""
    if not (said.patch or said.strangers):
        return {}
    named = {role.name: own.name for role, own in zip(spec.roles, there.roles, strict=True)}
    usual = native(plain(spec, extras))
    if usual is None or [role.name for role in usual.roles] != [*named.values()]:
        usual = native(plain(spec, {**extras, **kept.remembered(Said(), there, spec, named)}))
    else:
        named = {}
    return kept.remembered(said, usual or there, spec, named)


def _remembered(value: Mapping[str, object], spec: JobSpec) -> dict[str, object]:
    """How the text says what has several ways of being said."""
    extras: dict[str, object] = {}
    if is_nothing(value.get(keys.MAX_RUNNING.key)):
        extras[UNLIMITED_BY_SILENCE] = True
    if spec.framework is None:
        extras |= _job_type_kept(value)
    custom = [
        str(item.get("Key")) for item in _list(value.get(keys.CUSTOM_ENVS.key)) if isinstance(item, dict)
    ]
    if custom:
        extras[CUSTOM_ENVS] = [name for name in dict.fromkeys(custom) if is_usable(name)]
    config = value.get(keys.CREDENTIAL_CONFIG.key)
    if spec.instance_role and config != credentials(spec.instance_role):
        extras[CREDENTIALS] = config
    return extras


def _job_type_kept(value: Mapping[str, object]) -> dict[str, object]:
    """The job type, where a JobSpec has no framework that it could be told from."""
    return {f"/{keys.JOB_TYPE.key}": value[keys.JOB_TYPE.key]}


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def _variables(job: Request) -> Iterator[tuple[str, str, object]]:
    """Every environment variable as (pointer, name, value)."""
    where = job.at(keys.ENVS.key)
    listed = job.value.get(keys.ENVS.key)
    if isinstance(listed, list) and all(isinstance(item, str) for item in listed):
        job.findings.note("object_from_list", where, key=keys.ENVS.key)
        for index, item in enumerate(listed):
            name, _equals, value = str(item).partition("=")
            yield f"{where}/{index}", name, value
    else:
        for name, given in job.bag(keys.ENVS).items():
            yield f"{where}/{escape(name)}", name, given
    for item in job.requests(keys.CUSTOM_ENVS):
        yield item.pointer, item.text(keys.CUSTOM_ENV_KEY), item.text(keys.CUSTOM_ENV_VALUE)
