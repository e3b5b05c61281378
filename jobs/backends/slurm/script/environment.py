"""The environment of a replica, as lines of the script.

The variables are those of the local backend (OpenPAI v0.14 and v2, DLC page, AIHC page).  Addresses and ports
are known only once Slurm has chosen the nodes, so the script computes them.  The job file's variables win
over these, except for the GPUs, which Slurm assigns.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Final

from jobs.backends.base import Submission
from jobs.backends.slurm.script import ports, staging
from jobs.dialects.sbatch.launcher import leader
from jobs.node.supervisor import announced_ports
from jobs.spec import Framework, JobSpec, MountPurpose, RoleSpec

TENSORFLOW_ROLES: Final = frozenset({"chief", "master", "ps", "worker", "evaluator"})
CHOSEN_AT_START: Final = (
    "MASTER_ADDR",
    "MASTER_PORT",
    "RANK",
    "PAI_TASK_INDEX",
    "PAI_CONTAINER_HOST_IP",
    "PAI_CONTAINER_HOST_PORT",
    "PAI_WORK_DIR",
    "JOB_CONSOLE_ENDPOINTS",
    "CUDA_VISIBLE_DEVICES",
)
"""Some of the variables that the script computes."""

FIXED: Final = frozenset({"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES"})
LOCATIONS: Final = {
    MountPurpose.DATA: "PAI_DATA_DIR",
    MountPurpose.OUTPUT: "PAI_OUTPUT_DIR",
    MountPurpose.CODE: "PAI_CODE_DIR",
}


def render_peers(spec: JobSpec) -> Iterator[str]:
    """Yield the lines about all replicas, for every replica: text in which the shell expands variables."""
    first = leader([role.name for role in spec.roles])
    offsets = list(ports.offsets(spec.roles))
    yield "ports=(${ports[*]})"
    yield f"export MASTER_ADDR=${{hosts[{first}.0]}}"
    yield f"export MASTER_PORT={_port(spec.roles[first], offsets[first], 0, 'http')}"
    for place, role in enumerate(spec.roles):
        yield _export_fixed(f"PAI_TASK_ROLE_TASK_COUNT_{role.name}", str(role.replicas))
        yield _export_fixed(f"PAI_RESOURCE_{role.name}", _resource(role))
        yield _export_fixed(f"PAI_MIN_FAILED_TASK_COUNT_{role.name}", _or_empty(role.completion.min_failed))
        yield _export_fixed(
            f"PAI_MIN_SUCCEEDED_TASK_COUNT_{role.name}", _or_empty(role.completion.min_succeeded)
        )
        addresses = (
            f"${{hosts[{place}.{index}]}}:{_port(role, offsets[place], index, 'http')}"
            for index in range(role.replicas)
        )
        yield _export_expanded(f"PAI_TASK_ROLE_{role.name}_HOST_LIST", ",".join(addresses))
        for index in range(role.replicas):
            yield f"host_{place}_{index}=${{hosts[{place}.{index}]}}"
            yield _export_expanded(f"PAI_HOST_IP_{role.name}_{index}", f"${{hosts[{place}.{index}]}}")
            for label in dict.fromkeys(each.label for each in ports.ports_of(role)):
                listed = _port(role, offsets[place], index, label, several=True)
                yield _export_expanded(f"PAI_PORT_LIST_{role.name}_{index}_{label}", listed)
                yield _export_expanded(f"PAI_{role.name}_{index}_{label}_PORT", listed)
    instances = ",".join(f"{role.name}:{index}" for role in spec.roles for index in range(role.replicas))
    yield _export_fixed("PAI_TASK_ROLE_INSTANCES", instances)
    if _is_tensorflow(spec):
        yield from _cluster(spec, offsets)


def render_role(submission: Submission, place: int) -> Iterator[str]:
    """Yield the lines of the environment of a replica of the role, for the shell on its node."""
    spec = submission.spec
    role = spec.roles[place]
    yield f"own=host_{place}_$SLURM_PROCID"
    yield from (_export(name, value) for name, value in fixed_variables(submission, role).items())
    yield from _replica_variables(spec, place)
    given = {**spec.env, **role.env}
    yield from (_export(name, value) for name, value in given.items() if name not in FIXED)
    if role.resources.gpus:
        yield "export NVIDIA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-void} CUDA_DEVICE_ORDER=PCI_BUS_ID"
    else:
        yield "export CUDA_VISIBLE_DEVICES= NVIDIA_VISIBLE_DEVICES=void CUDA_DEVICE_ORDER=PCI_BUS_ID"


def fixed_variables(submission: Submission, role: RoleSpec) -> dict[str, str]:
    """Return the variables of a replica that are known before Slurm has chosen its node."""
    return {**_job(submission), **_replica(role)}


def render_exports(variables: Mapping[str, str]) -> str:
    """Return a file of variables for a shell to source."""
    return "".join(f"{_export(name, value)}\n" for name, value in variables.items())


def _job(submission: Submission) -> dict[str, str]:
    spec, user = submission.spec, submission.person.name
    roles = ",".join(role.name for role in spec.roles)
    count, replicas = str(len(spec.roles)), str(spec.replicas)
    framework = f"{user}~{spec.name}"
    places = {
        LOCATIONS[purpose]: location for purpose, location in staging.told_locations(submission).items()
    }
    return {
        "PAI_JOB_NAME": spec.name,
        "PAI_USER_NAME": user,
        "PAI_USERNAME": user,
        "PAI_VIRTUAL_CLUSTER": submission.virtual_cluster,
        "PAI_FRAMEWORK_NAME": framework,
        "FRAMEWORK_NAME": framework,
        "HADOOP_USER_NAME": user,
        "APP_ID": submission.key,
        **{name: places.get(name, "") for name in LOCATIONS.values()},
        "PAI_TASK_ROLE_COUNT": count,
        "PAI_TASK_ROLES_NUM": count,
        "PAI_JOB_TASK_ROLE_COUNT": count,
        "PAI_TASK_ROLE_LIST": roles,
        "PAI_JOB_TASK_ROLE_LIST": roles,
        "PAI_TASKS_NUM": replicas,
        "PAI_JOB_TASK_COUNT": replicas,
        "JOB_NAME": submission.job_id,
        "AIHC_JOB_NAME": spec.name,
        "WORLD_SIZE": replicas,
        "PYTHONUNBUFFERED": "1",
    }


def _replica(role: RoleSpec) -> dict[str, str]:
    has, count = role.resources, str(role.replicas)
    return {
        "PAI_CURRENT_TASK_ROLE_NAME": role.name,
        "PAI_TASK_ROLE_NAME": role.name,
        "PAI_TASK_ROLE_NUM": count,
        "PAI_CURRENT_TASK_ROLE_TASK_COUNT": count,
        "PAI_CURRENT_TASK_ROLE_CPU_COUNT": _cpus(role),
        "PAI_TASK_CPU_NUM": _cpus(role),
        "PAI_CURRENT_TASK_ROLE_GPU_COUNT": str(has.gpus),
        "PAI_TASK_GPU_NUM": str(has.gpus),
        "PAI_CURRENT_TASK_ROLE_MEM_MB": str(has.memory_mib),
        "PAI_TASK_MEM_MB": str(has.memory_mib),
        "PAI_CURRENT_TASK_ROLE_SHM_MB": str(has.shm_mib),
        "PAI_CURRENT_TASK_ROLE_MIN_FAILED_TASK_COUNT": _or_empty(role.completion.min_failed),
        "PAI_CURRENT_TASK_ROLE_MIN_SUCCEEDED_TASK_COUNT": _or_empty(role.completion.min_succeeded),
        "PAI_RESOURCE": _resource(role),
        "NPROC_PER_NODE": str(max(1, has.gpus)),
    }


def _replica_variables(spec: JobSpec, place: int) -> Iterator[str]:
    """Yield the variables of its index, address and ports."""
    role, first = spec.roles[place], leader([role.name for role in spec.roles])
    order = [first, *(each for each in range(len(spec.roles)) if each != first)]
    before = sum(spec.roles[each].replicas for each in order[: order.index(place)])
    offset = list(ports.offsets(spec.roles))[place]
    http = _port(role, offset, "SLURM_PROCID", "http")
    for name in ("PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", "PAI_TASK_INDEX", "PAI_TASK_ROLE_INDEX"):
        yield f"export {name}=$SLURM_PROCID"
    yield f"export RANK=$(({before} + SLURM_PROCID))"
    for name in ("PAI_CONTAINER_HOST_IP", "PAI_CURRENT_CONTAINER_IP"):
        yield f"export {name}=${{!own}}"
    for name in ("PAI_CONTAINER_HOST_PORT", "PAI_CURRENT_CONTAINER_PORT"):
        yield f"export {name}={http}"
    yield f"export PAI_CONTAINER_SSH_PORT={_port(role, offset, 'SLURM_PROCID', 'ssh')}"
    listed = {
        label: _port(role, offset, "SLURM_PROCID", label, several=True)
        for label in dict.fromkeys(each.label for each in ports.ports_of(role))
    }
    for label, numbers in listed.items():
        yield _export_computed(f"PAI_CONTAINER_HOST_{label}_PORT_LIST", numbers)
    custom = ";".join(listed[port.label].replace(",", ";") for port in role.ports)
    yield _export_computed("CUSTOM_PORTS", custom)
    yield f"export PAI_WORK_DIR=$PWD JOB_CONSOLE_ENDPOINTS=$PWD/{announced_ports.NAME}"
    if _is_tensorflow(spec):
        task = json.dumps({"type": role.name.lower()}).removesuffix("}")
        opened = (
            f'{{"cluster": $tf_cluster, "task": {task}, "index": $SLURM_PROCID}}, "environment": "cloud"}}'
        )
        yield f'export TF_CONFIG="{_escape_quoted(opened)}"'


def _cluster(spec: JobSpec, offsets: list[int]) -> Iterator[str]:
    """Yield the `cluster` of TF_CONFIG, which each replica completes."""
    clusters = []
    for place, role in enumerate(spec.roles):
        addresses = ", ".join(
            f'"${{hosts[{place}.{index}]}}:{_port(role, offsets[place], index, "http")}"'
            for index in range(role.replicas)
        )
        clusters.append(f"{_escape(json.dumps(role.name.lower()))}: [{addresses}]")
    yield f"tf_cluster='{{{', '.join(clusters)}}}'"


def _is_tensorflow(spec: JobSpec) -> bool:
    """Return whether TF_CONFIG is set: TensorFlow 1 does not start when it names unknown roles."""
    names = {role.name.lower() for role in spec.roles}
    if any("'" in name for name in names):
        return False
    return spec.framework is Framework.TENSORFLOW or (spec.replicas > 1 and names <= TENSORFLOW_ROLES)


def _port(role: RoleSpec, offset: int, index: int | str, label: str, *, several: bool = False) -> str:
    """Return the expression of a replica's first port of that label, or all of them."""
    mine = ports.ports_of(role)
    found = [each for each in mine if each.label == label]
    numbers = [
        str(each.at)
        if each.at
        else ports.port_expression(f"{offset} + {index} * {len(mine)} + {each.position}")
        for each in found
    ]
    return ",".join(numbers if several else numbers[:1])


def _export(name: str, value: str) -> str:
    """Return a line that sets a variable, or a comment for a name that no shell can have."""
    return f"export {name}={shlex.quote(value)}" if _is_shell_name(name) else _invalid_name(name)


def _export_computed(name: str, value: str) -> str:
    """Return the line for a value that the shell computes."""
    return f'export {name}="{value}"' if _is_shell_name(name) else _invalid_name(name)


def _export_fixed(name: str, value: str) -> str:
    """Return the line in a text that the shell expands, for a fixed value."""
    return _escape(_export(name, value))


def _export_expanded(name: str, value: str) -> str:
    """Return the line in a text that the shell expands, for a value to expand."""
    return _export_computed(name, value) if _is_shell_name(name) else _escape(_invalid_name(name))


def _is_shell_name(name: str) -> bool:
    return name.isascii() and name.isidentifier()


def _invalid_name(name: str) -> str:
    return f"# {name!a} is no name that a shell can expand"


def _escape(value: str) -> str:
    """Escape a value in a text that the shell expands."""
    return value.replace("\\", "\\\\").replace("$", "\\$").replace("`", "\\`")


def _escape_quoted(value: str) -> str:
    """Escape a value between double quotes, except for variables."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("`", "\\`")


def _resource(role: RoleSpec) -> str:
    has = role.resources
    return f"{has.gpus},{_cpus(role)},{has.memory_mib},{has.shm_mib}"


def _cpus(role: RoleSpec) -> str:
    return f"{role.resources.cpu_milli / 1000:g}"


def _or_empty(value: int | None) -> str:
    return "" if value is None else str(value)
