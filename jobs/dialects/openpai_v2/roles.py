"""`taskRoles` ↔ the roles of a JobSpec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jobs.dialects.base import Fix
from jobs.dialects.commands import remark_on
from jobs.dialects.fields import Integer
from jobs.dialects.objects import as_object, check_replicas, without_empty, write_changes
from jobs.dialects.openpai_v2 import commands, extras, keys, prerequisites
from jobs.dialects.openpai_v2.commands import Script
from jobs.dialects.openpai_v2.part import FilePart
from jobs.dialects.openpai_v2.prerequisites import Item, Prerequisites
from jobs.dialects.openpai_v2.templates import Context
from jobs.dialects.record import is_misspelt, nearest_key
from jobs.dialects.text_renderer import JsonObject
from jobs.spec import CompletionPolicy, Port, Resources, RestartPolicy, RoleSpec

OLD_COUNTS = {"minFailedTaskCount": keys.MIN_FAILED.key, "minSucceededTaskCount": keys.MIN_SUCCEEDED.key}
"""How drafts of v2 spelled the counts."""


@dataclass(slots=True)
class V2Role:
    """One member of `taskRoles`."""

    name: str
    replicas: int
    completion: CompletionPolicy
    restart: RestartPolicy
    image: str
    resources: Resources
    ports: dict[str, int]
    script: Script
    items: dict[str, Item] = field(default_factory=dict)

    def build(self, env: Mapping[str, str], said: extras.KnownExtras) -> RoleSpec:
        """Return the JobSpec's role; called only when nothing was wrong with the file."""
        begin = said.begin_at.get(self.name, {})
        more: dict[str, object] = {"gpu_type": said.gpu_types.get(self.name, "")}
        if not self.resources.disk_mib:
            more["disk_mib"] = said.disk_mib.get(self.name, 0)
        return RoleSpec(
            name=self.name,
            replicas=self.replicas,
            command=self.script.command,
            image=self.image,
            resources=self.resources.model_copy(update=more),
            ports=tuple(
                Port(label=label, begin_at=begin.get(label, 0), count=count)
                for label, count in self.ports.items()
            ),
            completion=self.completion,
            restart=self.restart,
            env={name: value for name, value in self.script.env.items() if name not in env},
        )


def read(
    root: FilePart, known: Prerequisites, deployment: Mapping[str, FilePart], common: Context
) -> tuple[V2Role, ...]:
    """Read all roles; `deployment` is what the chosen deployment adds, by role."""
    roles = []
    for name, part in root.read_named(keys.TASK_ROLES):
        part.note_unknown()
        roles.append(_read_role(name, part, known, deployment.get(name), common))
    check_replicas((role.replicas for role in roles), root.at(keys.TASK_ROLES.key), root.findings)
    return tuple(roles)


def _read_role(
    name: str, part: FilePart, known: Prerequisites, added: FilePart | None, common: Context
) -> V2Role:
    items = {kind: item for kind in prerequisites.FIELDS if (item := known.find(kind, part))}
    image = items.get(prerequisites.IMAGE)
    if image is None:
        part.findings.note("no_image", part.at(keys.DOCKER_IMAGE.key), key=keys.DOCKER_IMAGE.key)
    resources, ports = _read_resources(part)
    context = {**common, **{f"${kind}": item.value for kind, item in items.items()}}
    script = commands.read(_commands(part, added), context, part.findings)
    remark_on(script.command, part.at(keys.COMMANDS.key), part.findings, name)
    return V2Role(
        name=name,
        replicas=part.integer(keys.INSTANCES),
        completion=_read_completion(part),
        restart=RestartPolicy(limit=_count(part, keys.TASK_RETRY_COUNT)),
        image=image.uris[0] if image else "",
        resources=resources,
        ports=ports,
        script=script,
        items=items,
    )


def _commands(part: FilePart, added: FilePart | None) -> list[tuple[str, str]]:
    """Return the role's commands between those of its deployment, each with its pointer."""
    key = keys.COMMANDS.key
    own: tuple[tuple[str, str], ...] = ()
    if key not in part.value:
        part.findings.problem("required", part.at(key), keys.OPENPAI, key=key)
    else:
        own = part.strings(key, keys.OPENPAI, least=1)
        if own and not any(text.strip() for _pointer, text in own):
            part.findings.problem("empty", part.at(key), keys.OPENPAI, key=key)
    before = added.strings(keys.PRE_COMMANDS.key, keys.OPENPAI) if added else ()
    after = added.strings(keys.POST_COMMANDS.key, keys.OPENPAI) if added else ()
    return [*before, *own, *after]


def _read_completion(part: FilePart) -> CompletionPolicy:
    """Return the counts; below 1 they never decide, as null does."""
    if keys.COMPLETION.key not in part.value:
        return CompletionPolicy()
    policy = part.part(keys.COMPLETION)
    strangers = [key for key in policy.value if key not in policy.table.by_name]
    for key in strangers:
        near = nearest_key(key, policy.table.by_name)
        meant = OLD_COUNTS.get(key) or (near if near and is_misspelt(key, near) else None)
        fix = Fix(policy.at(key), key=meant) if meant and meant not in policy.value else None
        policy.findings.problem("forbidden_key", policy.at(key), keys.OPENPAI, fix, key=key)
    return CompletionPolicy(
        min_failed=_count(policy, keys.MIN_FAILED), min_succeeded=_count(policy, keys.MIN_SUCCEEDED)
    )


def _count(policy: FilePart, rule: Integer) -> int | None:
    number = policy.optional_integer(rule)
    return number if number is not None and number > 0 else None


def _read_resources(part: FilePart) -> tuple[Resources, dict[str, int]]:
    """Return the resources of each task, and its ports."""
    given = part.part(keys.RESOURCES)
    if not isinstance(part.value.get(keys.RESOURCES.key), dict):
        return Resources(), {}
    given.note_unknown()
    container = part.part(keys.CONTAINER)
    container.note_unknown()
    for key, place in ((keys.SCM_SHM_MB.key, part), (keys.STORAGE_GB.key, given)):
        if key in place.value:
            part.findings.note("scm_only", place.at(key), key=key)
    shm = part.integer(keys.SCM_SHM_MB) if is_scm_shm(part.value) else container.integer(keys.SHM_MB)
    resources = Resources(
        cpu_milli=max(given.integer(keys.CPU), 1) * 1000,
        memory_mib=max(given.integer(keys.MEMORY_MB), 1),
        shm_mib=shm,
        disk_mib=given.integer(keys.STORAGE_GB) * 1024,
        gpus=given.integer(keys.GPU),
        rdma=container.flag(keys.INFINIBAND),
    )
    return resources, given.counts(keys.PORTS)


def is_scm_shm(role: Mapping[str, object]) -> bool:
    """Tell whether the role says its shared memory where SCM does."""
    return keys.SCM_SHM_MB.key in role


# --- writing ---------------------------------------------------------------------------------------------


def write(role: JsonObject, there: RoleSpec | None, wanted: RoleSpec) -> JsonObject:
    """Return `role`, which says `there`, made to say `wanted`."""
    has, had = wanted.resources, there.resources if there else None
    if there is None:
        head: JsonObject = {keys.INSTANCES.key: 1, keys.COMPLETION.key: {}}
        role = {**head, **role}
    write_changes(role, (keys.INSTANCES,), there, wanted)
    if (there.restart if there else RestartPolicy()).limit != wanted.restart.limit:
        extras.set_member(role, keys.TASK_RETRY_COUNT.key, wanted.restart.limit)
    policy = dict(as_object(role.get(keys.COMPLETION.key)))
    before = there.completion if there else None
    write_changes(policy, (keys.MIN_FAILED, keys.MIN_SUCCEEDED), before, wanted.completion)
    options = dict(as_object(role.get(keys.CONTAINER.key)))
    write_changes(role if is_scm_shm(role) else options, (keys.SHM_MB,), had, has)
    if had is not None or has.rdma:
        write_changes(options, (keys.INFINIBAND,), had, has)
    for key, members in ((keys.COMPLETION.key, policy), (keys.CONTAINER.key, options)):
        if members != as_object(role.get(key)):
            role[key] = members
    given = dict(as_object(role.get(keys.RESOURCES.key)))
    write_changes(given, (keys.CPU, keys.MEMORY_MB, keys.GPU), had, has)
    if keys.STORAGE_GB.key in given and had is not None:
        write_changes(given, (keys.STORAGE_GB,), had, has)
    if there is None or _counts(wanted.ports) != _counts(there.ports):
        given.pop(keys.PORTS.key, None)
        counts = {label: port.count for label, port in extras.label_ports(wanted).items()}
        given |= without_empty({keys.PORTS.key: counts})
    role[keys.RESOURCES.key] = given
    return role


def _counts(ports: tuple[Port, ...]) -> list[tuple[str, int]]:
    return [(port.label, port.count) for port in ports]
