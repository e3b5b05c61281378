"""`taskRoles` → the roles of a JobSpec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from jobs.dialects import placeholders
from jobs.dialects.base import Fix
from jobs.dialects.examine import INVISIBLE
from jobs.dialects.fields import CONSOLE, MOST_REPLICAS
from jobs.dialects.mend import mend_command
from jobs.dialects.openpai_v1 import keys
from jobs.dialects.record import Record
from jobs.dialects.spans import escape
from jobs.spec import CompletionPolicy, Port, Resources, TaskRole

KNOWN: Final = frozenset(key.key for key in keys.TASK_ROLES.keys)
PORT_KNOWN: Final = frozenset(key.key for key in keys.PORT_LIST.keys)


@dataclass(frozen=True, slots=True)
class Common:
    """What v1 says once for all roles."""

    image: str
    gpu_type: str
    rdma: bool


@dataclass(frozen=True, slots=True)
class Role:
    """One element of `taskRoles`."""

    name: str
    replicas: int
    cpus: int
    memory_mib: int
    shm_mib: int
    gpus: int
    disk_gib: int
    command: str
    completion: tuple[int | None, int | None]
    ports: tuple[tuple[str, int, int], ...]

    def build(self, common: Common) -> TaskRole:
        """The JobSpec's role; called only when nothing was wrong with the file."""
        resources = Resources(
            cpu_milli=self.cpus * 1000,
            memory_mib=self.memory_mib,
            shm_mib=self.shm_mib,
            disk_mib=self.disk_gib * 1024,
            gpus=self.gpus,
            gpu_type=common.gpu_type,
            rdma=common.rdma,
        )
        return TaskRole(
            name=self.name,
            replicas=self.replicas,
            command=self.command,
            image=common.image,
            resources=resources,
            ports=tuple(Port(label=label, begin_at=first, count=count) for label, first, count in self.ports),
            completion=CompletionPolicy(min_failed=self.completion[0], min_succeeded=self.completion[1]),
        )


def read(job: Record, extras: dict[str, object]) -> tuple[Role, ...]:
    """All roles; of two with one name the later counts, in the place of the first (OpenPAI v0.14)."""
    roles: dict[str, Role] = {}
    pointers: dict[str, str] = {}
    for record in job.records(keys.TASK_ROLES):
        role = _role(record, extras)
        if role.name and role.name in roles:
            job.findings.note("duplicate_role", pointers[role.name], name=role.name)
        roles[role.name], pointers[role.name] = role, record.pointer
    total = sum(role.replicas for role in roles.values())
    if total > MOST_REPLICAS:
        where = job.at(keys.TASK_ROLES.key)
        job.findings.problem("too_many_replicas", where, CONSOLE, count=total, most=MOST_REPLICAS)
    return tuple(roles.values())


def _role(record: Record, extras: dict[str, object]) -> Role:
    name = record.text(keys.ROLE_NAME)
    memory = record.integer(keys.MEMORY_MB)
    role = Role(
        name=name,
        replicas=record.integer(keys.TASK_NUMBER),
        cpus=record.integer(keys.CPU_NUMBER),
        memory_mib=memory,
        shm_mib=_shared_memory(record, memory),
        gpus=record.integer(keys.GPU_NUMBER),
        disk_gib=record.integer(keys.STORAGE_GB),
        command=record.text(keys.COMMAND),
        completion=(
            record.optional_integer(keys.MIN_FAILED),
            record.optional_integer(keys.MIN_SUCCEEDED),
        ),
        ports=_ports(record, f"/{keys.TASK_ROLES.key}/{escape(name)}", extras),
    )
    _check_counts(record, role)
    _remarks(record, role)
    for key, value in record.unknown(KNOWN).items():
        extras[f"/{keys.TASK_ROLES.key}/{escape(name)}/{escape(key)}"] = value
    return role


def _shared_memory(record: Record, memory: int) -> int:
    """shmMB, which may not be more than memoryMB when it is given (OpenPAI v0.14)."""
    shared = record.integer(keys.SHM_MB)
    comparable = record.doubtful.isdisjoint((keys.SHM_MB.key, keys.MEMORY_MB.key))
    if keys.SHM_MB.key in record.value and shared > memory and comparable:
        where = record.at(keys.SHM_MB.key)
        record.findings.problem(
            "above_memory",
            where,
            keys.OPENPAI,
            Fix(where, memory),
            key=keys.SHM_MB.key,
            value=shared,
            most=memory,
        )
    return shared


def _check_counts(record: Record, role: Role) -> None:
    """Neither count may be more than the role has tasks (OpenPAI v0.14)."""
    for rule, count in zip((keys.MIN_FAILED, keys.MIN_SUCCEEDED), role.completion, strict=True):
        comparable = record.doubtful.isdisjoint((rule.key, keys.TASK_NUMBER.key))
        if count is not None and count > role.replicas and comparable:
            where = record.at(rule.key)
            record.findings.problem(
                "above_task_number",
                where,
                keys.OPENPAI,
                Fix(where, role.replicas),
                key=rule.key,
                value=count,
                most=role.replicas,
            )


def _ports(record: Record, named: str, extras: dict[str, object]) -> tuple[tuple[str, int, int], ...]:
    """The role's ports; of two with one label the later counts (OpenPAI v0.14)."""
    ports: dict[str, tuple[str, int, int]] = {}
    for port in record.records(keys.PORT_LIST):
        label = port.text(keys.LABEL)
        if label and label in ports:
            record.findings.note("duplicate_label", port.pointer, label=label)
        if "." in label or "~" in label:
            record.findings.note("name_unexpandable", port.at(keys.LABEL.key), name=label)
        ports[label] = (label, port.integer(keys.BEGIN_AT), port.integer(keys.PORT_NUMBER))
        for key, value in port.unknown(PORT_KNOWN).items():
            extras[f"{named}/{keys.PORT_LIST.key}/{escape(label)}/{escape(key)}"] = value
    return tuple(ports.values())


def _remarks(record: Record, role: Role) -> None:
    """What is accepted, and still worth a word; a command that can be mended comes with its fix."""
    findings = record.findings
    if "." in role.name or "~" in role.name:
        findings.note("name_unexpandable", record.at(keys.ROLE_NAME.key), name=role.name)
    if keys.STORAGE_GB.key in record.value:
        findings.note("scm_only", record.at(keys.STORAGE_GB.key), key=keys.STORAGE_GB.key)
    where = record.at(keys.COMMAND.key)
    if found := INVISIBLE.search(role.command):
        findings.note("invisible_character", where, character=f"U+{ord(found[0]):04X}")
    if placeholders.holds_password(role.command):
        findings.note("password_in_command", where)
    mended = mend_command(role.command)
    if mended:
        findings.note(
            "command_mended",
            where,
            Fix(where, mended.command),
            role=role.name,
            findings=",".join(mended.findings),
        )
