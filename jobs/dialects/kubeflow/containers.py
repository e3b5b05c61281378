"""Init containers and sidecars of a pod ↔ those of a role, with the empty folders that all of them share.

A sidecar is a further container, or an init container that is always restarted (Kubernetes: sidecar
containers).  A container with the main one's image says none of its own.  A folder is shared where one empty
volume is mounted at the same path in the main container and in all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from jobs.dialects.fields import Records, Text, Texts
from jobs.dialects.kubeflow import keys
from jobs.dialects.objects import as_object, free_name, read_fields, without_empty
from jobs.dialects.request import Request
from jobs.dialects.text_renderer import JsonObject
from jobs.dialects.variables import as_text, is_usable
from jobs.spec import PodContainer, RoleSpec, name_containers

NATIVE: Final = "native"
"""Of a role: the sidecars that are init containers, with their places among those."""

_RESTART: Final = "restartPolicy"
_ALWAYS: Final = "Always"


@dataclass(frozen=True, slots=True)
class OtherContainers:
    """Containers of a pod besides its main one; `mounts` are what each of them mounts, by path."""

    init_containers: tuple[PodContainer, ...] = ()
    sidecars: tuple[PodContainer, ...] = ()
    native: Mapping[str, int] = field(default_factory=dict)
    mounts: tuple[Mapping[str, str], ...] = ()

    def find_shared(self, mounts: Mapping[str, str]) -> list[str]:
        """Return the paths at which all containers mount the same volumes; `mounts` are the main one's."""
        if not self.mounts:
            return []
        return [path for path, name in mounts.items() if all(each.get(path) == name for each in self.mounts)]


def read(first: Sequence[Request], beside: Sequence[Request], image: str) -> OtherContainers:
    """Return the containers of both lists; `image` is the main container's."""
    native = {
        as_text(each.value.get("name")): place
        for place, each in enumerate(first)
        if each.value.get(_RESTART) == _ALWAYS
    }
    waited = [each for each in first if as_text(each.value.get("name")) not in native]
    always = [each for each in first if as_text(each.value.get("name")) in native]
    return OtherContainers(
        tuple(_read_container(each, keys.INIT_CONTAINERS, image) for each in waited),
        tuple(
            [_read_container(each, keys.INIT_CONTAINERS, image) for each in always]
            + [_read_container(each, keys.SIDECARS, image) for each in beside]
        ),
        native,
        tuple(_read_mounts(each) for each in (*first, *beside)),
    )


def _read_container(container: Request, rule: Records, image: str) -> PodContainer:
    simple = [each for each in rule.keys if isinstance(each, (Text, Texts)) and each.path]
    fields = read_fields(container, simple)
    own = fields["image"] if fields["image"] != image else ""
    return PodContainer(**{**fields, "image": own}, env=_read_variables(container))


def _read_variables(container: Request) -> dict[str, str]:
    """Return the variables with values; those that only the cluster can fill are noted."""
    found: dict[str, str] = {}
    for item in container.requests(keys.ENV):
        name = as_text(item.value.get("name"))
        if item.value.get("valueFrom"):
            item.findings.note("value_of_cluster", item.pointer, name=name)
        elif is_usable(name):
            found[name] = as_text(item.value.get("value", ""))
        elif item.value:
            item.findings.note("env_name_unusable", item.pointer, name=name)
    return found


def _read_mounts(container: Request) -> dict[str, str]:
    """Return the names of the volumes that it mounts as a whole, by path."""
    return {
        str(item.value.get("mountPath")): str(item.value.get("name"))
        for item in container.requests(keys.VOLUME_MOUNTS)
        if not item.value.keys() - {"mountPath", "name"}
    }


def write(
    role: RoleSpec, main: str, native: Mapping[str, Any], mounts: Sequence[JsonObject]
) -> tuple[list[JsonObject], list[JsonObject]]:
    """Return the init containers and the sidecars of a pod, whose main container is called `main`.

    `mounts` are those of the folders that all share; `native` says which sidecars are init containers.
    """
    named = list(_name(role, main))
    count = len(role.init_containers)
    first = [_write_container(name, each, role.image, mounts) for name, each in named[:count]]
    beside = []
    for name, each in named[count:]:
        written = _write_container(name, each, role.image, mounts)
        place = native.get(name)
        if isinstance(place, int):
            first.insert(place, {**written, _RESTART: _ALWAYS})
        else:
            beside.append(written)
    return first, beside


def _name(role: RoleSpec, main: str) -> Iterator[tuple[str, PodContainer]]:
    """Yield the containers with their names: each has one, and no two of a pod have the same."""
    taken = {main}
    for usual, container in name_containers(role):
        name = free_name(container.name or usual, taken)
        taken.add(name)
        yield name, container


def _write_container(
    name: str, container: PodContainer, image: str, mounts: Sequence[JsonObject]
) -> JsonObject:
    env = [{"name": key, "value": value} for key, value in container.env.items()]
    return {
        "name": name,
        **without_empty(
            {
                "image": container.image or image,
                "command": list(container.command),
                "args": list(container.args),
                "workingDir": container.working_dir,
                "env": env,
                keys.VOLUME_MOUNTS.key: [as_object(each) for each in mounts],
            }
        ),
    }
