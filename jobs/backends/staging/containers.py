"""Init containers and sidecars as they are for every backend: what can't run, and the secrets they name."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.backends.staging.mounts import refusal
from jobs.dialects import placeholders
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
