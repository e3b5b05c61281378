"""Roles of a plan: their commands, ports and amounts, as every backend that has plans makes them."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.backends.staging import containers, software
from jobs.backends.staging import tensorboard as staged_tensorboard
from jobs.node.frameworks import registry
from jobs.node.supervisor.plan import Counts, Role, Slot, TensorBoardPlan
from jobs.node.wrapper import tensorboard
from jobs.node.wrapper.environment import IMPLICIT_PORTS
from jobs.spec import JobSpec, Port, ResourceRequest, RoleSpec


def started_roles(spec: JobSpec) -> list[RoleSpec]:
    """Return the roles with the commands that their replicas run, behind what software and framework need."""
    shared, roles = registry.count_shared_memory_mib(spec), []
    for position, role in enumerate(spec.roles):
        amount = max(role.resources.shm_mib, shared)
        resources = role.resources.model_copy(update={"shm_mib": amount})
        command = registry.wrap_command(spec, position)
        started = role.model_copy(update={"command": command, "resources": resources})
        roles.append(software.with_modules(started, spec.software))
    return roles


def implicit_ports(spec: JobSpec, place: int) -> list[Port]:
    """Return the ports that replicas of the role at a place have without asking for them."""
    asked = {port.label for port in spec.roles[place].ports}
    labels = (*IMPLICIT_PORTS, *staged_tensorboard.labels(spec, place))
    return [Port(label=label) for label in labels if label not in asked]


def plan_role(role: RoleSpec, ask: ResourceRequest, slots: Sequence[Slot], shm_mib: int) -> Role:
    """Return the role of a plan, with the requested amounts."""
    init_containers, sidecars = containers.plan_containers(role)
    return Role(
        name=role.name,
        command=role.command,
        image=role.image,
        cpu_milli=ask.cpu_milli,
        memory_mib=ask.memory_mib,
        shm_mib=shm_mib or role.resources.shm_mib,
        gpus=ask.gpus,
        env=role.env,
        completion=Counts(role.completion.min_failed, role.completion.min_succeeded),
        labels=tuple(port.label for port in role.ports),
        slots=tuple(slots),
        disk_mib=role.resources.disk_mib,
        init_containers=init_containers,
        sidecars=sidecars,
    )


def plan_tensorboard(spec: JobSpec, *, has_own: bool) -> TensorBoardPlan | None:
    """Return the plan of TensorBoard beside the job, None without; `has_own`: the console's may be used."""
    path = staged_tensorboard.log_path(spec)
    if path is None:
        return None
    command = software.with_prologue(tensorboard.COMMAND, spec.software)
    return TensorBoardPlan(staged_tensorboard.position(spec), path, command, has_own=has_own)
