"""A role of a JobSpec → a member of `taskRoles`, but for its image, places and commands."""

from __future__ import annotations

import math

from jobs.dialects.openpai_v2 import keys
from jobs.dialects.openpai_v2.extras import as_object
from jobs.dialects.openpai_v2.names import free
from jobs.dialects.openpai_v2.roles import is_scm_shm
from jobs.dialects.rendering import JsonObject
from jobs.spec import CompletionPolicy, Port, TaskRole


def written(role: JsonObject, there: TaskRole | None, wanted: TaskRole) -> JsonObject:
    """`role`, which says `there`, made to say `wanted`."""
    if there is None:
        head: JsonObject = {keys.INSTANCES.key: 1, keys.COMPLETION.key: {}}
        role = {**head, **role}
    if there is None or wanted.replicas != there.replicas:
        role[keys.INSTANCES.key] = wanted.replicas
    if there is None or wanted.completion != there.completion:
        role[keys.COMPLETION.key] = _completion(
            as_object(role.get(keys.COMPLETION.key)), there.completion if there else None, wanted.completion
        )
    _shared_memory(role, there, wanted)
    _resources(role, there, wanted)
    return role


def _completion(there: JsonObject, before: CompletionPolicy | None, policy: CompletionPolicy) -> JsonObject:
    said: JsonObject = dict(there)
    if before is None or policy.min_failed != before.min_failed:
        said[keys.MIN_FAILED.key] = policy.min_failed
    if before is None or policy.min_succeeded != before.min_succeeded:
        said[keys.MIN_SUCCEEDED.key] = policy.min_succeeded
    return said


def _shared_memory(role: JsonObject, there: TaskRole | None, wanted: TaskRole) -> None:
    """Shared memory and RDMA; OpenPAI's default is written out where a job has less."""
    has, had = wanted.resources, there.resources if there else None
    options = dict(as_object(role.get(keys.CONTAINER.key)))
    if had is None or has.shm_mib != had.shm_mib:
        (role if is_scm_shm(role) else options)[keys.SHM_MB.key] = has.shm_mib
    if (had is None and has.rdma) or (had is not None and has.rdma != had.rdma):
        options[keys.INFINIBAND.key] = has.rdma
    if options != as_object(role.get(keys.CONTAINER.key)):
        role[keys.CONTAINER.key] = options


def _resources(role: JsonObject, there: TaskRole | None, wanted: TaskRole) -> None:
    has, had = wanted.resources, there.resources if there else None
    given = dict(as_object(role.get(keys.RESOURCES.key)))
    for key, now, before in (
        (keys.CPU.key, has.cpu_milli, had and had.cpu_milli),
        (keys.MEMORY_MB.key, has.memory_mib, had and had.memory_mib),
        (keys.GPU.key, has.gpus, had and had.gpus),
    ):
        if had is None or now != before:
            given[key] = math.ceil(now / 1000) if key == keys.CPU.key else now
    if keys.STORAGE_GB.key in given and had is not None and has.disk_mib != had.disk_mib:
        given[keys.STORAGE_GB.key] = math.ceil(has.disk_mib / 1024)
    if there is None or _counts(wanted.ports) != _counts(there.ports):
        ports = labelled(wanted)
        given.pop(keys.PORTS.key, None)
        if ports:
            given[keys.PORTS.key] = {label: port.count for label, port in ports.items()}
    role[keys.RESOURCES.key] = given


def labelled(role: TaskRole) -> dict[str, Port]:
    """The role's ports under labels that v2 allows, each its own."""
    ports: dict[str, Port] = {}
    for port in role.ports:
        label = port.label if keys.PORTS.fits(port.label) else keys.PORTS.propose(port.label)
        ports[free(label, ports)] = port
    return ports


def _counts(ports: tuple[Port, ...]) -> list[tuple[str, int]]:
    return [(port.label, port.count) for port in ports]
