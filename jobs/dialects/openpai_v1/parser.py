"""OpenPAI v1 JSON → JobSpec: the whole file, its environment, its task roles and its directories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jobs.dialects import edit, placeholders
from jobs.dialects.base import Fix, Parsed
from jobs.dialects.commands import remark_on
from jobs.dialects.document import Document
from jobs.dialects.fields import Text
from jobs.dialects.findings import Findings
from jobs.dialects.objects import as_object, check_replicas, open_object, read_fields, read_image
from jobs.dialects.openpai_v1 import keys
from jobs.dialects.openpai_v1.renderer import ENV_VALUES, render_spec
from jobs.dialects.ours import export_data
from jobs.dialects.ours import parser as ours
from jobs.dialects.ours.overlay import apply_patch
from jobs.dialects.ours.parser import ObjectContent
from jobs.dialects.reading_cache import read_once
from jobs.dialects.record import Record, kind_of
from jobs.dialects.secret_extraction import withhold
from jobs.dialects.source import read
from jobs.dialects.spans import escape, split
from jobs.dialects.variables import Variables, as_text, is_usable
from jobs.spec import (
    CompletionPolicy,
    JobSpec,
    Mount,
    MountPurpose,
    Port,
    RegistryAuth,
    Resources,
    RetryPolicy,
    RoleSpec,
    SecretRef,
)

KNOWN = frozenset({key.key for key in keys.JOB} | {keys.SNAPSHOT})
_KNOWN_OF_ROLES = frozenset(key.key for key in keys.TASK_ROLES.keys)
_ROLE_RULES = (
    keys.ROLE_NAME,
    keys.MEMORY_MB,
    keys.TASK_NUMBER,
    keys.CPU_NUMBER,
    keys.SHM_MB,
    keys.GPU_NUMBER,
    keys.STORAGE_GB,
    keys.COMMAND,
    keys.MIN_FAILED,
    keys.MIN_SUCCEEDED,
)
_AMOUNTS = ("cpu_milli", "memory_mib", "shm_mib", "gpus", "disk_mib")
_COUNTS = ("min_failed", "min_succeeded")
_KNOWN_OF_PORTS = frozenset(key.key for key in keys.PORT_LIST.keys)


@dataclass(slots=True)
class Removed:
    """Parts of the text that no JobSpec holds: secrets by name, the edits that replace them, and extras."""

    secrets: dict[str, str] = field(default_factory=dict)
    edits: list[edit.SetValue | edit.RemoveValue] = field(default_factory=list)
    extras: dict[str, object] = field(default_factory=dict)

    def take_secret(self, name: str, value: str, pointer: str, instead: str) -> None:
        """Take the secret `value` out of the text, and put `instead` at `pointer`."""
        self.secrets[name] = value
        self.edits.append(edit.SetValue(pointer, instead))


@read_once
def parse(document: Document) -> Parsed:
    """Read `document`; raises Refused with all problems at once."""
    source = read(document, repeats=True)
    value = open_object(source, keys.OPENPAI)
    findings, removed = Findings(document.room), Removed()
    job = Record(value, "", findings)
    reader = _FieldReader(job, removed)
    findings.refuse_if_any(source)
    without = reader.build()
    spec, said = _with_ours(job, removed, without)
    findings.refuse_if_any(source)
    removed.extras |= _ours_kept(said, without, spec)
    return Parsed(
        spec=spec,
        extras=removed.extras,
        notes=findings.notes(source),
        secrets=removed.secrets,
        text=edit.edit(document, removed.edits),
    )


def _with_ours(job: Record, removed: Removed, without: JobSpec) -> tuple[JobSpec, ObjectContent]:
    """Return the job with what our own object says, and that object."""
    more = job.bag(keys.EXTRAS)
    if keys.OURS not in more:
        return without, ObjectContent()
    where = job.at(keys.EXTRAS.key)
    held = withhold({keys.OURS: more[keys.OURS]}, (), ())
    for pointer, name in held.found.items():
        job.findings.note("secret_taken", f"{where}{pointer}", key=split(pointer)[-1], name=name)
    removed.secrets |= held.secrets
    removed.edits += [edit.SetValue(f"{where}{each.pointer}", each.value) for each in held.edits]
    value = as_object(held.value)[keys.OURS]
    at = f"{where}/{keys.OURS}"
    said = ours.read(value, at, job.findings, [role.name for role in without.roles])
    return apply_patch(without, said.patch, at, job.findings), said


def _ours_kept(said: ObjectContent, there: JobSpec, spec: JobSpec) -> dict[str, object]:
    """Return the extras for our own object, and for the names under which the roles stand."""
    if not (said.patch or said.strangers):
        return {}
    pairs = zip(spec.roles, there.roles, strict=True)
    named = {role.name: own.name for role, own in pairs if role.name != own.name}
    usual = parse_native(render_spec(spec, export_data.make_extras(ObjectContent(), there, spec, named)))
    return export_data.make_extras(said, usual or there, spec, named)


def parse_native(document: Mapping[str, object]) -> JobSpec | None:
    """Return what OpenPAI's own keys say; None when they can't be accepted."""
    findings = Findings()
    job = _FieldReader(Record(document, "", findings), Removed())
    return None if findings.any_problem else job.build()


class _FieldReader:
    """Every key of the file, read once; `build` is called when nothing was wrong."""

    def __init__(self, job: Record, removed: Removed) -> None:
        self._fields = read_fields(job, (keys.JOB_NAME,))
        image = read_image(job, keys.IMAGE, job.at(keys.IMAGE.key))
        self._fields["mounts"] = _read_directories(job, removed)
        auth_file = _read_uri(job, keys.AUTH_FILE, removed)
        self._fields |= {
            "registry_auth": RegistryAuth(file_uri=auth_file) if auth_file else None,
            "quota": job.text(keys.VIRTUAL_CLUSTER),
        }
        gpu_type = job.text(keys.GPU_TYPE)
        self._fields["retry"] = _read_retry(job)
        variables, switches = _read_environment(job, removed)
        self._fields |= {
            "env": variables.plain,
            "secret_env": variables.secret,
            "keep_failed_s": keys.KEEP_FAILED_S if keys.IS_DEBUG.key in switches else 0,
        }
        self._common: dict[str, Any] = {"gpu_type": gpu_type, "rdma": keys.RDMA.key in switches}
        self._image, self._roles = image, _read_roles(job, removed.extras)
        _keep_rest(job, removed.extras)
        _note_looser_rules(job)

    def build(self) -> JobSpec:
        """Return the JobSpec."""
        roles = (
            RoleSpec(
                **{name: role.fields[name] for name in ("name", "replicas", "command")},
                image=self._image,
                resources=Resources(**{name: role.fields[name] for name in _AMOUNTS}, **self._common),
                ports=tuple(Port(**port) for port in role.ports),
                completion=CompletionPolicy(**{name: role.fields[name] for name in _COUNTS}),
            )
            for role in self._roles
        )
        return JobSpec(**self._fields, roles=tuple(roles))


def _read_directories(job: Record, removed: Removed) -> tuple[Mount, ...]:
    """Return the directories, with OpenPAI's default for output."""
    mounts = []
    for rule, purpose in keys.DIRECTORIES:
        uri = _read_uri(job, rule, removed)
        if not uri and purpose is MountPurpose.OUTPUT:
            uri = keys.DEFAULT_OUTPUT
        if uri:
            mounts.append(Mount(purpose=purpose, uri=uri, read_only=purpose is MountPurpose.CODE))
    return tuple(mounts)


def _read_uri(job: Record, rule: Text, removed: Removed) -> str:
    """Return a URI without the password that it may hold."""
    uri, password = placeholders.split_password(job.text(rule), rule.key)
    if password:
        removed.take_secret(rule.key, password, job.at(rule.key), uri)
        job.findings.note("secret_taken", job.at(rule.key), key=rule.key, name=rule.key)
    return uri


def _read_retry(job: Record) -> RetryPolicy:
    """Return OpenPAI's retryCount: -1 retries failures without end, -2 restarts whatever happens."""
    count = job.integer(keys.RETRY_COUNT)
    if count < 0:
        job.findings.note(
            "looser_rule",
            job.at(keys.RETRY_COUNT.key),
            key=keys.RETRY_COUNT.key,
            value=count,
            applied=keys.OPENPAI,
            stricter=keys.SCM,
        )
        return RetryPolicy(limit=None, on_success=count == -2, fancy=count != -2)
    return RetryPolicy(limit=count)


def _keep_rest(job: Record, extras: dict[str, object]) -> None:
    """Keep what means nothing here for export, and note it."""
    kill_all = job.optional_integer(keys.KILL_ALL)
    if kill_all is not None:
        extras[job.at(keys.KILL_ALL.key)] = kill_all
        job.findings.note("obsolete_key", job.at(keys.KILL_ALL.key), key=keys.KILL_ALL.key)
    more = job.bag(keys.EXTRAS)
    for key in more:
        if not any(character in "._" or (character.isascii() and character.isalnum()) for character in key):
            job.findings.problem("bad_key", f"{job.at(keys.EXTRAS.key)}", keys.OPENPAI, key=key)
    others = {key: value for key, value in more.items() if key != keys.OURS}
    if others:
        extras[job.at(keys.EXTRAS.key)] = others
        job.findings.note("kept_unused", job.at(keys.EXTRAS.key), key=keys.EXTRAS.key)
    if keys.SNAPSHOT in job.value:
        extras[job.at(keys.SNAPSHOT)] = job.value[keys.SNAPSHOT]
        job.findings.note("form_snapshot", job.at(keys.SNAPSHOT), key=keys.SNAPSHOT)
    for key, value in job.unknown(KNOWN).items():
        extras[job.at(key)] = value


def _note_looser_rules(job: Record) -> None:
    """Note names and images that OpenPAI itself would not take."""
    if "~" in str(job.value.get(keys.JOB_NAME.key, "")):
        job.findings.note(
            "looser_rule",
            job.at(keys.JOB_NAME.key),
            key=keys.JOB_NAME.key,
            value="~",
            applied=keys.SCM,
            stricter=keys.OPENPAI,
        )
    image = job.value.get(keys.IMAGE.key)
    if isinstance(image, str) and any(character.isspace() for character in image):
        job.findings.note("image_with_blanks", job.at(keys.IMAGE.key))


# --- environment -----------------------------------------------------------------------------------------


def _read_environment(job: Record, removed: Removed) -> tuple[Variables, set[str]]:
    """Return the variables of `jobEnvs`, and the names of its switches that are on.

    OpenPAI writes any value as text; here objects and lists become compact JSON.  A value that was no
    text is remembered as it was, for export.
    """
    found, switches = Variables(), set[str]()
    base = job.at(keys.JOB_ENVS.key)
    for name, value in job.bag(keys.JOB_ENVS).items():
        pointer = f"{base}/{escape(name)}"
        if not any(character == "_" or (character.isascii() and character.isalnum()) for character in name):
            job.findings.problem("bad_key", base, keys.OPENPAI, key=name)
        elif name in (keys.IS_DEBUG.key, keys.RDMA.key) and value is True:
            switches.add(name)
        elif not is_usable(name):
            removed.extras[pointer] = value
            job.findings.note("env_name_unusable", pointer, name=name)
        else:
            _read_variable(job.findings, found, removed, pointer, name, value)
    return found, switches


def _read_variable(
    findings: Findings, found: Variables, removed: Removed, pointer: str, name: str, value: object
) -> None:
    text = as_text(value)
    known = placeholders.reference(text)
    if known:
        found.secret[name] = SecretRef(name=known)
    elif text and placeholders.looks_secret(name):
        found.secret[name] = SecretRef(name=name)
        removed.take_secret(name, text, pointer, placeholders.placeholder(name))
        findings.note("secret_taken", pointer, key=name, name=name)
    else:
        found.plain[name] = text
        if not isinstance(value, str):
            as_object(removed.extras.setdefault(ENV_VALUES, {}))[name] = value
        if isinstance(value, (dict, list)):
            findings.note("env_value_converted", pointer, name=name, got=kind_of(value))


# --- task roles ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class V1Role:
    """One element of `taskRoles`, by fields of the JobSpec's models."""

    fields: Mapping[str, Any]
    ports: Iterable[Mapping[str, Any]]


def _read_roles(job: Record, extras: dict[str, object]) -> tuple[V1Role, ...]:
    """Return all roles; of two with one name the later counts, in the place of the first (OpenPAI v0.14)."""
    roles: dict[str, V1Role] = {}
    pointers: dict[str, str] = {}
    for record in job.records(keys.TASK_ROLES):
        role = _read_role(record, extras)
        name = role.fields["name"]
        if name and name in roles:
            job.findings.note("duplicate_role", pointers[name], name=name)
        roles[name], pointers[name] = role, record.pointer
    counts = (role.fields["replicas"] for role in roles.values())
    check_replicas(counts, job.at(keys.TASK_ROLES.key), job.findings)
    return tuple(roles.values())


def _read_role(record: Record, extras: dict[str, object]) -> V1Role:
    fields = read_fields(record, _ROLE_RULES)
    base = f"/{keys.TASK_ROLES.key}/{escape(fields['name'])}"
    role = V1Role(fields, _read_ports(record, base, extras))
    _check_shared_memory(record, fields["shm_mib"], fields["memory_mib"])
    _check_counts(record, role)
    _note_role(record, fields["name"], fields["command"])
    for key, value in record.unknown(_KNOWN_OF_ROLES).items():
        extras[f"{base}/{escape(key)}"] = value
    return role


def _check_shared_memory(record: Record, shared: int, memory: int) -> None:
    """Refuse shmMB above memoryMB when it is given (OpenPAI v0.14)."""
    key = keys.SHM_MB.key
    comparable = record.doubtful.isdisjoint((key, keys.MEMORY_MB.key))
    if key in record.value and shared > memory and comparable:
        where = record.at(key)
        record.findings.problem(
            "above_memory", where, keys.OPENPAI, Fix(where, memory), key=key, value=shared, most=memory
        )


def _check_counts(record: Record, role: V1Role) -> None:
    """Refuse counts that are more than the role has tasks (OpenPAI v0.14)."""
    most = role.fields["replicas"]
    for rule in (keys.MIN_FAILED, keys.MIN_SUCCEEDED):
        count = role.fields[rule.path.rpartition(".")[2]]
        comparable = record.doubtful.isdisjoint((rule.key, keys.TASK_NUMBER.key))
        if count is not None and count > most and comparable:
            where = record.at(rule.key)
            record.findings.problem(
                "above_task_number",
                where,
                keys.OPENPAI,
                Fix(where, most),
                key=rule.key,
                value=count,
                most=most,
            )


def _read_ports(record: Record, base: str, extras: dict[str, object]) -> Iterable[Mapping[str, Any]]:
    """Return the role's ports; of two with one label the later counts (OpenPAI v0.14)."""
    ports: dict[str, Mapping[str, Any]] = {}
    for port in record.records(keys.PORT_LIST):
        label = port.text(keys.LABEL)
        if label and label in ports:
            record.findings.note("duplicate_label", port.pointer, label=label)
        if "." in label or "~" in label:
            record.findings.note("name_unexpandable", port.at(keys.LABEL.key), name=label)
        ports[label] = {"label": label, **read_fields(port, (keys.BEGIN_AT, keys.PORT_NUMBER))}
        for key, value in port.unknown(_KNOWN_OF_PORTS).items():
            extras[f"{base}/{keys.PORT_LIST.key}/{escape(label)}/{escape(key)}"] = value
    return ports.values()


def _note_role(record: Record, name: str, command: str) -> None:
    """Note what is accepted of a role though another system would not take it."""
    if "." in name or "~" in name:
        record.findings.note("name_unexpandable", record.at(keys.ROLE_NAME.key), name=name)
    if keys.STORAGE_GB.key in record.value:
        record.findings.note("scm_only", record.at(keys.STORAGE_GB.key), key=keys.STORAGE_GB.key)
    remark_on(command, record.at(keys.COMMAND.key), record.findings, name)
