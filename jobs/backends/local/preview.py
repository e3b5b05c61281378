"""Preview of a submission: the plan as `accept` would make it, role by role, without secrets.

Ports, GPUs and whatever else is chosen at the start are left open: the environment is built twice, from two
different choices, and what differs between them is only known at the start.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from jobs.backends import fixed_ports
from jobs.backends.base import RenderedJob, RenderedRole, Submission
from jobs.backends.local import accept
from jobs.backends.local.config import LocalConfig
from jobs.backends.local.own_ports import Ports
from jobs.backends.previews import list_mounts, mask_secrets
from jobs.backends.staging import job_secrets
from jobs.backends.staging.mounts import MountPlanner
from jobs.backends.staging.planned_roles import implicit_ports, plan_role, started_roles
from jobs.node.supervisor.plan import Plan, PlannedReplica, Role, Slot
from jobs.node.wrapper import environment
from jobs.node.wrapper.launch_arguments import is_contained, room_of
from jobs.spec import JobSpec, Port, ResourceRequest, RoleSpec, resource_requests

MOST_PEERS: Final = 16
"""With more replicas than that, what is said of each of them is not shown variable by variable."""

_CHOICES: Final = (0, 1)


def render(
    submission: Submission, config: LocalConfig, runtime: accept.JobRuntime, attempt: Path
) -> RenderedJob:
    """Return a preview of the attempt at that path; raises Refused."""
    hidden = mask_secrets(submission, job_secrets.list_names(submission, config.code()))
    layer = accept.refuse_impossible(hidden, config, runtime)
    secrets = job_secrets.secrets_of(hidden, config.code(), layer)["env"]
    plans = [_make_plan(hidden, config, runtime, layer, choice) for choice in _CHOICES]
    asks, spec = resource_requests(hidden.spec), hidden.spec
    roles = [
        _role(plans, ordinal, role, ask, attempt, secrets)
        for ordinal, (role, ask) in enumerate(zip(spec.roles, asks, strict=True))
    ]
    return RenderedJob(tuple(roles), spec.time_limit_s, spec.grace_s)


def _make_plan(
    submission: Submission, config: LocalConfig, runtime: accept.JobRuntime, layer: MountPlanner, choice: int
) -> Plan:
    """A plan with GPUs and the host's ports out of the air, others for each choice."""
    spec = submission.spec
    ports = accept.list_own_ports(spec, config) if runtime.own_network else _host_ports(spec, choice)
    roles = []
    for role, ask, given in zip(started_roles(spec), resource_requests(spec), ports, strict=True):
        slots = [Slot(tuple(range(choice, choice + ask.gpus)), own) for own in given]
        roles.append(plan_role(role, ask, slots, layer.shm_mib))
    return accept.make_plan(submission, config, runtime, layer, roles)


def _host_ports(spec: JobSpec, choice: int) -> list[list[Ports]]:
    return [
        [
            _replica_ports((*implicit_ports(spec, place), *role.ports), index, choice)
            for index in range(role.replicas)
        ]
        for place, role in enumerate(spec.roles)
    ]


def _replica_ports(asked: Sequence[Port], index: int, choice: int) -> Ports:
    ports: dict[str, tuple[int, ...]] = {}
    for port in asked:
        first = fixed_ports.first_port(port, index) if port.begin_at else choice + index + 1
        ports[port.label] = tuple(range(first, first + port.count))
    return ports


def _role(
    plans: list[Plan],
    ordinal: int,
    role: RoleSpec,
    ask: ResourceRequest,
    attempt: Path,
    secrets: Mapping[str, str],
) -> RenderedRole:
    plan = plans[0]
    mine = [place for place in plan.replicas() if place.ordinal == ordinal]
    place = mine[0]
    env = _env(plans, [place.position, mine[-1].position], attempt, secrets)
    made = place.role
    sent = RenderedRole(
        role=made.name,
        replicas=made.replicas,
        cpu_milli=made.cpu_milli,
        memory_mib=made.memory_mib,
        gpus=made.gpus,
        gpu_type=ask.gpu_type,
        shm_mib=made.shm_mib,
        image=made.image,
        contained=is_contained(plan, place),
        env=env,
        mounts=tuple(list_mounts(plan)),
        ports=tuple((port.label, port.begin_at, port.count) for port in role.ports),
        script="",
    )
    return replace(sent, script="".join(_script(plan, place, made, sent, attempt)))


def _env(
    plans: list[Plan], positions: list[int], attempt: Path, secrets: Mapping[str, str]
) -> dict[str, str | None]:
    """Each variable, with its value where that is the same for every choice and every replica of the role."""
    found: list[Mapping[str, str]] = []
    for plan in plans:
        places = plan.replicas()
        told = environment.peers(plan) if len(places) <= MOST_PEERS else {}
        for position in positions:
            room = room_of(plan, places[position], attempt)
            found.append(environment.build(plan, places[position], told, room, secrets))
    first, *others = found
    return {
        name: value if all(other.get(name) == value for other in others) else None
        for name, value in sorted(first.items())
        if name != environment.MARK
    }


def _script(
    plan: Plan, place: PlannedReplica, role: Role, sent: RenderedRole, attempt: Path
) -> Iterator[str]:
    """The command with its prologue, as a shell would have to be told; what is only known then is said so."""
    gpus = f" gpus={role.gpus}" + (f" ({sent.gpu_type})" if sent.gpu_type else "") if role.gpus else ""
    yield "#!/bin/bash\n"
    yield f"# {plan.name}: {role.name}, replicas={role.replicas}\n"
    yield f"# each: cpu={role.cpu_milli / 1000:g} memory={role.memory_mib}MiB shm={role.shm_mib}MiB{gpus}\n"
    if role.image:
        yield f"# image: {role.image}{'' if sent.contained else ' (not used)'}\n"
    for path, source, read_only in sent.mounts:
        yield f"# mount: {path} <- {source}{' (read-only)' if read_only else ''}\n"
    if plan.packages is not None:
        wanted = list(plan.packages.names)
        wanted += [f"-r {plan.packages.directory}"] if plan.packages.directory else []
        yield f"# packages: {' '.join(wanted)}\n"
    for label, begin_at, count in sent.ports:
        yield f"# port: {label} {begin_at or 'any'}{f' x{count}' if count > 1 else ''}\n"
    if plan.time_limit_s is not None:
        yield f"# time limit: {plan.time_limit_s} s\n"
    yield f"# grace: {plan.grace_s} s\n\n"
    for name, value in sent.env.items():
        yield f"export {name}={shlex.quote(value)}\n" if value is not None else f"# at the start: {name}\n"
    room = room_of(plan, place, attempt)
    yield f"\ncd {shlex.quote(room.work)}\n"
    yield f"exec /bin/bash -c {shlex.quote(role.command)}\n"
