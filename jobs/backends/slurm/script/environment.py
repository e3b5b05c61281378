"""The environment of a replica, as lines of the script.

The variables are those of the local backend (OpenPAI v0.14 and v2, DLC page, AIHC page).  Addresses and ports
are known only once Slurm has chosen the nodes, so the script computes them.  The job file's variables win
over these, except for the GPUs, which Slurm assigns.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Final

from jobs.backends.base import Submission
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.script import ports, shell, staging
from jobs.backends.staging import tensorboard as staged_tensorboard
from jobs.backends.staging import tracking
from jobs.backends.staging.framework_jobs import make_framework_job
from jobs.node.frameworks import mpi, registry, tensorflow
from jobs.node.frameworks.job import SHELL, WEB, FrameworkJob
from jobs.node.supervisor import announced_ports
from jobs.node.wrapper import tensorboard
from jobs.node.wrapper.environment import (
    ENDPOINT_IP,
    FIXED,
    INDEX_VARIABLES,
    LOCATION_VARIABLES,
    job_variables,
    list_instances,
    named_variables,
    peer_variables,
    role_variables,
)
from jobs.spec import Framework, JobSpec, RoleSpec

_RANDOM: Final = "$(od -An -N 32 -tx1 /dev/urandom | tr -d ' \\n')"
"""An expression of a new key for each run."""


def render_peers(spec: JobSpec) -> Iterator[str]:
    """Yield the lines about all replicas, for every replica: text in which the shell expands variables."""
    job, endpoints = _framework_job(spec), _ScriptEndpoints(spec)
    yield "ports=(${ports[*]})"
    yield f"export MASTER_ADDR={job.master_address}"
    yield f"export MASTER_PORT={job.master_port()}"
    yield from (_export_expanded(name, value) for name, value in registry.shared_variables(job).items())
    if registry.needs_key(spec.framework):
        yield f"export {mpi.KEY}={_RANDOM}"
    for place, role in enumerate(spec.roles):
        known = named_variables(role.name, role.replicas, role.resources, role.completion)
        yield from (_export_fixed(name, value) for name, value in known.items())
        indexes = range(role.replicas)
        yield from (f"host_{place}_{index}=${{hosts[{place}.{index}]}}" for index in indexes)
        listed = [endpoints.list_ports(place, index) for index in indexes]
        found = peer_variables(job, place, listed)
        yield from (_export_expanded(name, value) for name, value in found.items())
    yield _export_fixed("PAI_TASK_ROLE_INSTANCES", list_instances(job))
    if _is_tensorflow(spec):
        yield _cluster(job)


def render_role(submission: Submission, place: int, config: SlurmConfig) -> Iterator[str]:
    """Yield the lines of the environment of a replica of the role, for the shell on its node."""
    spec = submission.spec
    role = spec.roles[place]
    yield f"own=host_{place}_$SLURM_PROCID"
    yield from (_export(name, value) for name, value in fixed_variables(submission, role, config).items())
    yield from _inner_locations(submission, config)
    yield from _replica_variables(spec, place)
    if tracking.is_offered(submission, config.console_url):
        before = sum(each.replicas for each in spec.roles[:place])
        url = shlex.quote(f"{config.console_url}/mlflow/{submission.key}")
        yield f"export {tracking.URI}={url}/$(({before} + SLURM_PROCID))"
    given = {**spec.env, **role.env}
    yield from (_export(name, value) for name, value in given.items() if name not in FIXED)
    if role.resources.gpus:
        yield "export NVIDIA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-void} CUDA_DEVICE_ORDER=PCI_BUS_ID"
    else:
        yield "export CUDA_VISIBLE_DEVICES= NVIDIA_VISIBLE_DEVICES=void CUDA_DEVICE_ORDER=PCI_BUS_ID"


def _inner_locations(submission: Submission, config: SlurmConfig) -> Iterator[str]:
    """Yield the variables of locations below the working folder, which the script alone knows."""
    for purpose, place in staging.told_locations(submission, config).items():
        if shell.lies_in_work(place):
            yield f"export {LOCATION_VARIABLES[purpose]}={shell.locate(place)}"


def fixed_variables(submission: Submission, role: RoleSpec, config: SlurmConfig) -> dict[str, str]:
    """Return the variables of a replica that are known before Slurm has chosen its node."""
    spec = submission.spec
    places = staging.told_locations(submission, config)
    return {
        **job_variables(_counts(spec), submission.person.name, spec.name, places),
        "PAI_VIRTUAL_CLUSTER": submission.virtual_cluster,
        "APP_ID": submission.key,
        "JOB_NAME": submission.job_id,
        "PYTHONUNBUFFERED": "1",
        **role_variables(role.name, role.replicas, role.resources, role.completion),
    }


def _counts(spec: JobSpec) -> dict[str, int]:
    """Return the number of replicas of each role."""
    return {role.name: role.replicas for role in spec.roles}


def _replica_variables(spec: JobSpec, place: int) -> Iterator[str]:
    """Yield the variables of its index, address and ports."""
    role, job, endpoints = spec.roles[place], _framework_job(spec), _ScriptEndpoints(spec)
    for name in INDEX_VARIABLES:
        yield f"export {name}=$SLURM_PROCID"
    yield f"export RANK=$(({job.count_before(place)} + SLURM_PROCID))"
    own = registry.own_variables(spec.framework, "$RANK", "$((RANK == 0))", job.roles[place].processes)
    yield from (f"export {name}={value}" for name, value in own.items())
    for name in ("PAI_CONTAINER_HOST_IP", "PAI_CURRENT_CONTAINER_IP", ENDPOINT_IP):
        yield f"export {name}=${{!own}}"
    for name in ("PAI_CONTAINER_HOST_PORT", "PAI_CURRENT_CONTAINER_PORT"):
        yield f"export {name}={endpoints.port(place, 'SLURM_PROCID', WEB)}"
    yield f"export PAI_CONTAINER_SSH_PORT={endpoints.port(place, 'SLURM_PROCID', SHELL)}"
    listed = endpoints.list_ports(place, "SLURM_PROCID")
    for label, numbers in listed.items():
        yield _export_computed(f"PAI_CONTAINER_HOST_{label}_PORT_LIST", numbers)
    custom = ";".join(listed[port.label].replace(",", ";") for port in role.ports)
    yield _export_computed("CUSTOM_PORTS", custom)
    yield f"export PAI_WORK_DIR=$PWD JOB_CONSOLE_ENDPOINTS=$PWD/{announced_ports.NAME}"
    if (path := staged_tensorboard.log_path(spec)) is not None:
        yield f"export {tensorboard.LOG_PATH}={shell.locate(path)}"
    if _is_tensorflow(spec):
        task = json.dumps({"type": role.name.lower()}).removesuffix("}")
        opened = (
            f'{{"cluster": $tf_cluster, "task": {task}, "index": $SLURM_PROCID}}, "environment": "cloud"}}'
        )
        yield f'export TF_CONFIG="{_escape_quoted(opened)}"'


def _cluster(job: FrameworkJob) -> str:
    """Return the line with the `cluster` of TF_CONFIG, which each replica completes."""
    clusters = []
    for place, name in tensorflow.cluster_roles(role.name for role in job.roles):
        addresses = ", ".join(f'"{endpoint}"' for endpoint in job.list_addresses(place))
        clusters.append(f"{_escape(json.dumps(name))}: [{addresses}]")
    return f"tf_cluster='{{{', '.join(clusters)}}}'"


def _framework_job(spec: JobSpec) -> FrameworkJob:
    checks_nodes = spec.sanity_check.enabled and spec.framework is not Framework.SLURM
    return make_framework_job(spec, "$SLURM_JOB_ID", _ScriptEndpoints(spec), checks_nodes=checks_nodes)


class _ScriptEndpoints:
    """Addresses and ports as the script knows them when it runs (`jobs.node.frameworks.job.Endpoints`)."""

    def __init__(self, spec: JobSpec) -> None:
        self._roles, self._offsets = spec.roles, list(ports.offsets(spec.roles))

    def address(self, role: int, index: int) -> str:
        """Return the expression of a replica's address."""
        return f"${{hosts[{role}.{index}]}}"

    def port(self, role: int, index: int | str, label: str) -> str:
        """Return the expression of the replica's first port with a label."""
        return self.list_ports(role, index)[label].split(",")[0]

    def list_ports(self, role: int, index: int | str) -> dict[str, str]:
        """Return the expressions of a replica's ports by label, separated by commas."""
        found, mine = dict[str, list[str]](), ports.ports_of(self._roles[role])
        for each in mine:
            computed = f"${{ports[{self._offsets[role]} + {index} * {len(mine)} + {each.position}]}}"
            found.setdefault(each.label, []).append(str(each.at) if each.at else computed)
        return {label: ",".join(numbers) for label, numbers in found.items()}


def _is_tensorflow(spec: JobSpec) -> bool:
    """Return whether TF_CONFIG is set: the script can't quote every name."""
    counts = _counts(spec)
    return tensorflow.has_config(spec.framework, counts) and not any("'" in name for name in counts)


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
