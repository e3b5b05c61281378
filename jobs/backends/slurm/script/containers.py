"""Init containers and sidecars, as shell functions of the prolog.

They are processes of the replica's own step, with its variables but without its GPUs, in its mounts and its
image.  `prolog.sh` runs the init containers one after the other before the command, and ends the sidecars
after it.  Secret values of their variables are in the attempt's file of secrets.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from jobs.backends.refusals import refusal
from jobs.backends.remote import attempts
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.script import container_runtimes, shell
from jobs.backends.staging import containers
from jobs.dialects import placeholders
from jobs.node.staging import mount_paths
from jobs.node.wrapper.environment import FIXED, companion_variables
from jobs.spec import JobSpec, RoleSpec, name_containers


def check(spec: JobSpec, config: SlurmConfig, *, alone: bool) -> None:
    """Raise Refused for containers that can't run beside the replicas.

    Slurm itself spreads a script over the nodes, so only one of them could have them.
    """
    runtime = container_runtimes.runtime_of(spec, config, alone=alone)
    for role in spec.roles:
        containers.check(role, is_contained=False)
        named = name_containers(role)
        if named and alone and spec.replicas > 1:
            raise refusal("containers_of_script", name=named[0][0])
        for name, container in named:
            if runtime in container_runtimes.BY_SRUN and container.image not in ("", role.image):
                raise refusal("container_other_image", name=name, role=role.name)


def render(spec: JobSpec, config: SlurmConfig, *, alone: bool) -> Iterator[str]:
    """Yield the functions `initialized` and `accompanied`, by the names of replicas."""
    runtime = container_runtimes.runtime_of(spec, config, alone=alone)
    for function, is_init in (("initialized", True), ("accompanied", False)):
        yield f"{function}() {{"
        yield "  case ${name%-*} in"
        for place, role in enumerate(spec.roles):
            yield f"    {shlex.quote(attempts.file_prefix(role.name, place))})"
            yield from (f"      {line}" for line in _calls(role, place, runtime, is_init=is_init))
            yield "      ;;"
        yield "  esac"
        yield "}"


def _calls(role: RoleSpec, place: int, runtime: str, *, is_init: bool) -> Iterator[str]:
    for position, (name, container) in enumerate(name_containers(role)):
        if (position < len(role.init_containers)) is not is_init:
            continue
        own = {key: value for key, value in container.env.items() if key not in FIXED}
        exports = " ".join(f"{key}={_value(place, position, key, value)}" for key, value in own.items())
        beside = " ".join(f"{key}={value}" for key, value in companion_variables(name).items())
        yield f"variables_{position}() {{ export {beside} {exports}; }}"
        image = ""
        if runtime == container_runtimes.APPTAINER and container.image:
            image = container_runtimes.image_name(container.image, runtime)
        words = (name, f"variables_{position}", image)
        rest = " ".join(shlex.quote(word) for word in (*container.command, *container.args))
        called = " ".join(map(shlex.quote, words))
        folder = shell.locate(mount_paths.locate(container.working_dir))
        yield f"{'initialize' if is_init else 'accompany'} {called} {folder} {rest} || return"


def _value(place: int, position: int, key: str, value: str) -> str:
    if placeholders.list_references(value):
        return f'"${_secret(place, position, key)}"'
    return shlex.quote(value)


def _secret(place: int, position: int, key: str) -> str:
    return f"container_{place}_{position}_{key}"


def secret_lines(spec: JobSpec, values: Mapping[str, str]) -> str:
    """Return lines for the file of secrets, by which a shell knows them without exporting them."""
    return "".join(
        f"{_secret(place, position, key)}={shlex.quote(placeholders.fill(value, values))}\n"
        for place, role in enumerate(spec.roles)
        for position, (_name, container) in enumerate(name_containers(role))
        for key, value in container.env.items()
        if placeholders.list_references(value)
    )
