"""Init containers and sidecars: what can't run, the secrets they name, and their part of a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobs.backends.refusals import refusal
from jobs.backends.staging.mounts import MountPlanner
from jobs.dialects import placeholders
from jobs.node.staging import mount_paths
from jobs.node.supervisor.plan import ContainerPlan
from jobs.spec import JobSpec, RoleSpec, name_containers


def check(role: RoleSpec, *, is_contained: bool) -> None:
    """Raise Refused for a container that can't run beside this role's replicas.

    Where those are plain processes, so are the others, which need a command of their own then.
    """
    for name, container in name_containers(role):
        if not is_contained and not container.command:
            raise refusal("container_without_command", name=name, role=role.name)
        if not is_contained and container.image and not role.image:
            raise refusal("container_image_alone", name=name, role=role.name)


def list_secrets(spec: JobSpec) -> Iterator[str]:
    """Yield the names of secrets in the containers' variables."""
    for role in spec.roles:
        for _name, container in name_containers(role):
            for value in container.env.values():
                yield from placeholders.list_references(value)


def plan_containers(role: RoleSpec) -> tuple[tuple[ContainerPlan, ...], tuple[ContainerPlan, ...]]:
    """Return the role's init containers and its sidecars."""
    made = tuple(
        ContainerPlan(
            name=name,
            image=each.image,
            command=each.command,
            args=each.args,
            folder=mount_paths.locate(each.working_dir) if each.working_dir else mount_paths.WORK,
            env={key: value for key, value in each.env.items() if not placeholders.list_references(value)},
        )
        for name, each in name_containers(role)
    )
    count = len(role.init_containers)
    return made[:count], made[count:]


def secrets_of(spec: JobSpec, values: Mapping[str, str]) -> dict[str, dict[str, dict[str, str]]]:
    """Return the variables that hold secrets, by role and container."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for role in spec.roles:
        for name, container in name_containers(role):
            env = {
                key: placeholders.fill(value, values)
                for key, value in container.env.items()
                if placeholders.list_references(value)
            }
            if env:
                found.setdefault(role.name, {})[name] = env
    return found


def lay_shared(spec: JobSpec, layer: MountPlanner) -> None:
    """Make a folder of the replica's own at each path that containers share; Refused.

    All plain processes of a replica have its temporary folder in common anyway.
    """
    for path in dict.fromkeys(mount_paths.locate(path) for role in spec.roles for path in role.shared_paths):
        if path == mount_paths.TMP:
            layer.share_temporary_folder()
        elif path != mount_paths.WORK:
            layer.own(path)
