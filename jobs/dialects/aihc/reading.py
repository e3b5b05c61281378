"""An AIHC `CreateJob` body, v2 or v1 → JobSpec."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.dialects import edit
from jobs.dialects.aihc import completion, conditions, keys, places, resources, roles
from jobs.dialects.aihc.document import NO_AMOUNTS, SHAPE, V1, V1_SPELLING, plain
from jobs.dialects.base import Parsed, Problem, Refused
from jobs.dialects.commands import remark_on
from jobs.dialects.document import Document
from jobs.dialects.fields import CONSOLE, MOST_REPLICAS
from jobs.dialects.findings import Findings
from jobs.dialects.leftovers import leftovers
from jobs.dialects.reading_cache import read_once
from jobs.dialects.record import kind_of
from jobs.dialects.rendering import JsonObject
from jobs.dialects.request import Request
from jobs.dialects.source import Source, read
from jobs.dialects.spans import split
from jobs.dialects.spelling import KEPT, of_what_is_said, spellings
from jobs.dialects.withhold import withhold
from jobs.spec import Check, CompletionPolicy, Framework, JobSpec, SecretRef, TaskRole, TensorBoard


@read_once
def parse(document: Document) -> Parsed:
    """Read `document`; raises Refused with all problems at once."""
    source = read(document)
    findings = Findings(document.room)
    held = withhold(_object(source), (), ())
    for pointer, name in held.found.items():
        findings.note("secret_taken", pointer, key=split(pointer)[-1], name=name)
    job = Job(held.value, findings)
    findings.refuse_if_any(source)
    spec = job.build()
    extras = job.extras(spec)
    conditions.remark(spec, job.request)
    return Parsed(spec, extras, findings.notes(source), held.secrets, edit.edit(document, held.edits))


def _object(source: Source) -> dict[str, object]:
    if isinstance(source.value, dict):
        return source.value
    line, column = source.position("")
    params = {"key": "", "expected": "object", "got": kind_of(source.value)}
    raise Refused((Problem("wrong_type", "", line, column, params, source=keys.PAGE),))


class Job:
    """Every key of a body without secrets, read once; `build` is called when nothing was wrong."""

    def __init__(self, value: object, findings: Findings) -> None:
        body: dict[str, object] = value if isinstance(value, dict) else {}
        job = self.request = Request(body, "", findings, keys.JOB).inspect()
        self._name, self._queue = job.text(keys.NAME), job.text(keys.QUEUE)
        framework = job.meaning(keys.JOB_TYPE)
        self._framework = Framework(framework) if framework else None
        if self._framework not in (None, Framework.PYTORCH):
            value = str(job.value[keys.JOB_TYPE.key])
            job.findings.note(
                "looser_rule",
                job.at(keys.JOB_TYPE.key),
                key=keys.JOB_TYPE.key,
                value=value,
                applied=keys.NEWER_PAGE,
                stricter=keys.PAGE,
            )
        self._command = job.text(keys.COMMAND)
        self._roles = roles.read(job)
        priority = job.meaning(keys.PRIORITY)
        self._priority = int(priority) if priority else None
        self._tags = {
            item.text(keys.LABEL_KEY): item.text(keys.LABEL_VALUE) for item in job.requests(keys.LABELS)
        }
        mounts = (places.read(item) for item in job.requests(keys.DATA_SOURCES))
        self._mounts = tuple(mount for mount in mounts if mount)
        self._fault_tolerance = Check(
            enabled=job.flag(keys.FAULT_TOLERANCE), arguments=job.text(keys.FAULT_TOLERANCE_ARGS)
        )
        self._tensorboard = _tensorboard(job)
        self._check()

    def build(self) -> JobSpec:
        """The JobSpec."""
        shared, secret = self._shared_variables()
        replicas = {role.name: role.replicas for role in self._roles}
        policies = completion.applied(replicas)
        registries = [role.registry for role in self._roles if role.registry]
        return JobSpec(
            name=self._name,
            tags=self._tags,
            framework=self._framework,
            roles=tuple(self._role(role, policies[role.name], shared) for role in self._roles),
            env=shared,
            secret_env=secret,
            registry_auth=registries[0] if registries else None,
            mounts=self._mounts,
            quota=self._queue,
            priority=self._priority,
            fault_tolerance=self._fault_tolerance,
            tensorboard=self._tensorboard,
        )

    def extras(self, spec: JobSpec) -> dict[str, object]:
        """What the body says beyond `spec`; what is kept for AIHC alone is noted."""
        body = self.request.raw
        rules = roles.rules(body.get(keys.JOB_SPEC.key))
        extras = self._form(spec)
        said = plain(spec, extras)
        spelling = self._spelling(of_what_is_said(spellings(body, rules), said), said)
        if spelling:
            extras[KEPT] = spelling
        for left in leftovers(body, said, rules, keys.NAMES):
            in_resources = left.name.rpartition("/")[0].endswith(f"/{keys.RESOURCES.key}")
            if in_resources and resources.is_said(left.value):
                continue
            extras[left.name] = left.value
            if left.known and left.value:
                self.request.findings.note("kept_unused", left.pointer, key=split(left.pointer)[-1])
        return extras

    def _form(self, spec: JobSpec) -> dict[str, object]:
        """Which of several forms the body has."""
        extras: dict[str, object] = {}
        if self._is_v1():
            extras[V1] = True
        silent = [role.name for role in self._roles if role.amounts.empty]
        if silent:
            extras[NO_AMOUNTS] = silent
        is_map = roles.is_map(self.request.raw.get(keys.JOB_SPEC.key))
        if is_map != roles.is_map(plain(spec, extras)[keys.JOB_SPEC.key]):
            extras[SHAPE] = "map" if is_map else "one"
        return extras

    def _spelling(self, spelling: dict[str, list[str]], said: JsonObject) -> dict[str, list[str]]:
        """The spelling to remember: in v1 what is spelled as in v2, and not what v1 calls otherwise."""
        if not self._is_v1():
            return spelling
        as_in_v2 = {key: [key] for key in V1_SPELLING if key not in spelling and key in self._words()}
        every = {**spelling, **of_what_is_said(as_in_v2, said)}
        return {key: used for key, used in every.items() if V1_SPELLING.get(key) != used}

    def _words(self) -> set[str]:
        """The keys of the body and of its TensorBoard."""
        board = self.request.raw.get(keys.TENSORBOARD.key)
        return {*self.request.raw, *(board if isinstance(board, dict) else ())}

    def _is_v1(self) -> bool:
        """The command inside of jobSpec, and none outside, is v1's."""
        return not self._command and any(role.command for role in self._roles)

    def _role(self, role: roles.Role, policy: CompletionPolicy, shared: Mapping[str, str]) -> TaskRole:
        return TaskRole(
            name=role.name,
            replicas=role.replicas,
            command=self._command or role.command,
            image=role.image,
            resources=role.amounts.build(),
            completion=policy,
            env={name: value for name, value in role.variables.plain.items() if name not in shared},
        )

    def _shared_variables(self) -> tuple[dict[str, str], dict[str, SecretRef]]:
        """Variables that all roles have alike are the job's; secrets always are."""
        first, *others = (role.variables.plain for role in self._roles)
        shared = {
            name: value for name, value in first.items() if all(other.get(name) == value for other in others)
        }
        secret: dict[str, SecretRef] = {}
        for role in self._roles:
            secret |= role.variables.secret
        return shared, secret

    def _check(self) -> None:
        """What concerns several keys."""
        findings = self.request.findings
        names = [role.name for role in self._roles]
        for role in self._roles:
            if names.count(role.name) > 1:
                findings.problem("role_twice", role.pointer, keys.PAGE, name=role.name)
            if self._command and role.command:
                findings.note("two_commands", f"{role.pointer}/{keys.COMMAND_INSIDE.key}", role=role.name)
        if not self._command and not all(role.command for role in self._roles):
            where = self.request.at(keys.COMMAND.key)
            findings.problem("required", where, keys.PAGE, key=keys.COMMAND.key)
        total = sum(role.replicas for role in self._roles)
        if total > MOST_REPLICAS:
            where = self.request.at(keys.JOB_SPEC.key)
            findings.problem("too_many_replicas", where, CONSOLE, count=total, most=MOST_REPLICAS)
        remark_on(self._command, self.request.at(keys.COMMAND.key), findings)
        for role in self._roles:
            remark_on(role.command, f"{role.pointer}/{keys.COMMAND_INSIDE.key}", findings)
        self._note_completion()

    def _note_completion(self) -> None:
        """Which rule was applied for the job's success."""
        counts = {role.name: role.replicas for role in self._roles}
        for role in self._roles:
            decides = completion.applied(counts)[role.name].min_succeeded
            if decides:
                self.request.findings.note(
                    "completion_applied", role.pointer, role=role.name, count=decides, job_type="TFJob"
                )


def _tensorboard(job: Request) -> TensorBoard | None:
    group = job.group(keys.TENSORBOARD)
    there = group.has(keys.ENABLE_TENSORBOARD) or group.has(keys.LOG_PATH)
    enabled, path = group.flag(keys.ENABLE_TENSORBOARD), group.text(keys.LOG_PATH)
    return TensorBoard(enabled=enabled, log_path=path) if there else None
