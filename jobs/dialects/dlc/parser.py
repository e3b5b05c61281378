"""A `CreateJob` request → JobSpec."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from jobs.dialects import edit
from jobs.dialects.base import Parsed
from jobs.dialects.commands import remark_on
from jobs.dialects.dlc import keys, limits, roles, settings
from jobs.dialects.dlc.completion import ALL_END, Participant, Success, decide_completion, with_minimum
from jobs.dialects.dlc.conditions import note_limits
from jobs.dialects.dlc.job_types import BY_NAME, with_known_types
from jobs.dialects.dlc.renderer import (
    CREDENTIALS,
    CUSTOM_ENVS,
    UNLIMITED_BY_SILENCE,
    render_spec,
    write_credentials,
)
from jobs.dialects.document import Document
from jobs.dialects.extras import find_extras
from jobs.dialects.fields import Text
from jobs.dialects.findings import Findings
from jobs.dialects.key_spellings import KEPT, keep_written, spellings
from jobs.dialects.objects import (
    as_list,
    as_object,
    check_replicas,
    keep_leftovers,
    open_object,
    read_field,
    read_fields,
    take_secrets,
)
from jobs.dialects.ours import export_data
from jobs.dialects.ours import parser as ours
from jobs.dialects.ours.keys import NAME
from jobs.dialects.ours.overlay import apply_patch
from jobs.dialects.ours.parser import ObjectContent
from jobs.dialects.reading_cache import read_once
from jobs.dialects.request import Request, is_nothing
from jobs.dialects.source import read
from jobs.dialects.spans import escape
from jobs.dialects.text_renderer import JsonObject
from jobs.dialects.variables import as_text, collect, is_usable
from jobs.spec import CodeSource, CompletionPolicy, JobSpec, Mount, Network, Requirements, RoleSpec

_BLANK_TO_FILL: Final = re.compile(r"<[^<>]*>")
"""What the pages write where an id of one's own belongs."""


@read_once
def parse(document: Document) -> Parsed:
    """Read `document`; raises Refused with all problems at once."""
    source = read(document)
    findings = Findings(document.room)
    held = take_secrets(open_object(source, limits.PAGE), findings, keys.SECRET_KEYS, keys.VARIABLES)
    job = RequestReader(held.value, findings)
    findings.refuse_if_any(source)
    without = job.build()
    said = job.ours(without)
    spec = apply_patch(without, said.patch, f"/{NAME}", findings)
    findings.refuse_if_any(source)
    extras = collect_extras(job.value, without, findings)
    if spec.framework is None:
        extras |= _job_type_kept(job.value)
    if spec.time_limit_s is not None:
        extras.pop(UNLIMITED_BY_SILENCE, None)
    extras |= _ours_kept(said, without, spec, extras)
    note_limits(spec, job.value, findings)
    return Parsed(spec, extras, findings.notes(source), held.secrets, edit.edit(document, held.edits))


class RequestReader:
    """Every key of a request without secrets, read once; `build` is called when nothing was wrong."""

    def __init__(self, value: object, findings: Findings) -> None:
        self.value: Mapping[str, object] = as_object(value)
        job = self._job = Request(self.value, "", findings, keys.JOB).inspect()
        self._type = BY_NAME.get(job.choice(keys.JOB_TYPE))
        self._fields = read_fields(job, (keys.DISPLAY_NAME, keys.DESCRIPTION))
        self._fields |= {
            "workspace": _read_id(job, keys.WORKSPACE_ID),
            "quota": _read_id(job, keys.RESOURCE_ID),
        }
        self._command = job.text(keys.USER_COMMAND)
        self._roles = self._read_roles()
        self._fields |= {
            "mounts": tuple(filter(None, map(_read_mount, job.requests(keys.DATA_SOURCES)))),
            "code": _read_code(job),
            "network": Network(**read_fields(job.group(keys.USER_VPC), keys.USER_VPC.keys)),
            "requirements": Requirements(**read_fields(job, (keys.LIBRARIES, keys.LIBRARY_DIR))),
            **settings.read(job, self._type.name if self._type else ""),
        }
        self._rdma = self._fields.pop("rdma")
        self._variables = collect(_variables(job), findings)
        self._fields |= {
            "instance_role": settings.read_instance_role(job),
            "priority": read_field(job, keys.PRIORITY),
            "time_limit_s": read_field(job, keys.MAX_RUNNING) or None,
            "visibility": job.word_meaning(keys.ACCESSIBILITY),
        }
        self._completions = self._decide(job.choice(keys.SUCCESS_POLICY))
        if len({str(role.registry) for role in self._roles if role.registry}) > 1:
            findings.note("registries_differ", job.at(keys.JOB_SPECS.key))
        remark_on(self._command, job.at(keys.USER_COMMAND.key), findings)
        for role in self._roles:
            remark_on(role.command, f"{role.pointer}/{keys.USER_COMMAND.key}", findings)

    def ours(self, without: JobSpec) -> ObjectContent:
        """Read our own object; `without` it the request says that."""
        if NAME not in self.value:
            return ObjectContent()
        names = [role.name for role in without.roles]
        return ours.read(self.value[NAME], f"/{NAME}", self._job.findings, names)

    def build(self) -> JobSpec:
        """Return the JobSpec, as far as DLC's own keys say it."""
        return JobSpec(
            **self._fields,
            framework=self._type.framework if self._type else None,
            roles=tuple(
                RoleSpec(
                    name=role.type,
                    replicas=role.replicas,
                    command=role.command or self._command,
                    image=role.image,
                    resources=role.amounts(rdma=self._rdma),
                    ports=role.ports,
                    completion=completion,
                    bid=role.bid,
                    nodes=role.nodes,
                    init_containers=role.init_containers,
                    sidecars=role.sidecars,
                    shared_paths=role.shared_paths,
                )
                for role, completion in zip(self._roles, self._completions, strict=True)
            ),
            env=self._variables.plain,
            secret_env=self._variables.secret,
            registry_auth=next((role.registry for role in self._roles if role.registry), None),
        )

    def _read_roles(self) -> tuple[roles.DlcRole, ...]:
        """Read all roles, each type once."""
        job, seen, found = self._job, set[str](), []
        for record in job.requests(keys.JOB_SPECS):
            role = roles.read(record, self._type, has_quota=bool(self._fields["quota"]))
            if role.type and role.type in seen:
                job.findings.problem("role_twice", record.pointer, limits.PAGE, name=role.type)
            seen.add(role.type)
            found.append(role)
        if not self._command and not all(role.command for role in found):
            where = job.at(keys.USER_COMMAND.key)
            job.findings.problem("required", where, limits.PAGE, key=keys.USER_COMMAND.key)
        check_replicas((role.replicas for role in found), job.at(keys.JOB_SPECS.key), job.findings)
        return tuple(found)

    def _decide(self, policy: str) -> tuple[CompletionPolicy, ...]:
        """Return when each role decides the job, and note the rule that was applied."""
        if self._type is None:
            return (ALL_END,) * len(self._roles)
        parts = tuple(
            Participant(role.type, role.replicas, role.is_chief, role.considered) for role in self._roles
        )
        completions = decide_completion(self._type, Success(policy, parts))
        for role, completion in zip(self._roles, completions, strict=True):
            if completion != ALL_END:
                self._job.findings.note(
                    "completion_applied",
                    role.pointer,
                    role=role.type,
                    count=completion.min_succeeded,
                    job_type=self._type.name,
                )
        return tuple(
            with_minimum(self._type, completion, role.replicas, role.least)
            for role, completion in zip(self._roles, completions, strict=True)
        )


def _read_id(job: Request, rule: Text) -> str:
    """Read an id; a blank of the pages that nobody has filled in is noted, and is none."""
    text = job.text(rule)
    if not _BLANK_TO_FILL.fullmatch(text.strip()):
        return text
    job.findings.note("blank_to_fill", job.at(rule.key), key=rule.key)
    return ""


def _read_mount(source: Request) -> Mount | None:
    """Read a dataset or a place; DLC does not say which are for output."""
    said = read_fields(source, (keys.DATA_SOURCE_ID, keys.DATA_URI, keys.DATA_PATH))
    said["options"] = _read_options(source)
    said["read_only"] = source.word_meaning(keys.DATA_ACCESS) == "ro"
    if said["id"] or said["uri"]:
        return Mount(**said)
    key = keys.DATA_SOURCE_ID.key
    source.findings.problem("required", source.at(key), limits.PAGE, key=key)
    return None


def _read_options(source: Request) -> dict[str, str]:
    """Read the options of a mount; what is no JSON object is kept for DLC."""
    try:
        value = json.loads(source.text(keys.DATA_OPTIONS) or "{}")
    except (ValueError, RecursionError):
        value = None
    return {name: as_text(item) for name, item in as_object(value).items()}


def _read_code(job: Request) -> CodeSource | None:
    """Read the registered code source."""
    group = job.group(keys.CODE_SOURCE)
    said = read_fields(group, keys.CODE_FIELDS)
    if said["id"]:
        return CodeSource(**said)
    if any(said.values()):
        key = keys.CODE_SOURCE_ID.key
        job.findings.problem("required", group.at(key), limits.PAGE, key=key)
    return None


def _variables(job: Request) -> Iterator[tuple[str, str, object]]:
    """Yield every environment variable as (pointer, name, value)."""
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


def parse_native(request: JsonObject) -> JobSpec | None:
    """Return what DLC's own keys of a request without secrets say; None when they can't be accepted."""
    findings = Findings()
    job = RequestReader(request, findings)
    return None if findings.any_problem else job.build()


# --- extras ----------------------------------------------------------------------------------------------


def collect_extras(value: Mapping[str, object], spec: JobSpec, findings: Findings) -> dict[str, object]:
    """Return what `value` says beyond `spec`; what is kept for DLC alone is noted."""
    extras = _remembered_forms(value, spec)
    value = {key: held for key, held in value.items() if key != NAME}
    said = render_spec(spec, extras)
    spelling = keep_written(spellings(value, keys.JOB), said)
    if spelling:
        extras[KEPT] = spelling
    rest = find_extras(with_known_types(value), said, keys.JOB, keys.NAMES)
    return extras | keep_leftovers(rest, findings)


def _ours_kept(
    said: ObjectContent, there: JobSpec, spec: JobSpec, extras: Mapping[str, object]
) -> dict[str, object]:
    """Return the extras for our own object, and for the types under which the roles stand."""
    if not (said.patch or said.strangers):
        return {}
    named = {role.name: own.name for role, own in zip(spec.roles, there.roles, strict=True)}
    usual = parse_native(render_spec(spec, extras))
    if usual is None or [role.name for role in usual.roles] != [*named.values()]:
        usual = parse_native(
            render_spec(spec, {**extras, **export_data.make_extras(ObjectContent(), there, spec, named)})
        )
    else:
        named = {}
    return export_data.make_extras(said, usual or there, spec, named)


def _remembered_forms(value: Mapping[str, object], spec: JobSpec) -> dict[str, object]:
    """Return the extras that tell how the text says what has several ways of being said."""
    extras: dict[str, object] = {}
    if is_nothing(value.get(keys.MAX_RUNNING.key)):
        extras[UNLIMITED_BY_SILENCE] = True
    if spec.framework is None:
        extras |= _job_type_kept(value)
    listed = as_list(value.get(keys.CUSTOM_ENVS.key))
    custom = [str(item.get("Key")) for item in listed if isinstance(item, dict)]
    if custom:
        extras[CUSTOM_ENVS] = [name for name in dict.fromkeys(custom) if is_usable(name)]
    config = value.get(keys.CREDENTIAL_CONFIG.key)
    if spec.instance_role and config != write_credentials(spec.instance_role):
        extras[CREDENTIALS] = config
    return extras


def _job_type_kept(value: Mapping[str, object]) -> dict[str, object]:
    """Return the job type, which a JobSpec without a framework does not tell."""
    return {f"/{keys.JOB_TYPE.key}": value[keys.JOB_TYPE.key]}
