"""The environment of a replica: what all replicas share lies in the claim, the rest in each pod.

The variables are those of the other backends (OpenPAI v0.14 and v2, DLC page, AIHC page).  A replica's
address is its name in the attempt's headless Service.  The job file's variables win, except for the GPUs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

from jobs.backends.base import Submission
from jobs.backends.fixed_ports import LAST
from jobs.backends.kubernetes.config import KubernetesConfig
from jobs.backends.kubernetes.objects.code import find_path, find_source
from jobs.backends.kubernetes.objects.kubeflow import name_roles
from jobs.backends.kubernetes.objects.volumes import is_data_dir
from jobs.backends.staging.framework_jobs import make_framework_job
from jobs.backends.staging.mounts import INNER_DATA
from jobs.dialects.kubeflow.kinds import JobKind
from jobs.node.frameworks import registry, tensorflow
from jobs.node.frameworks.job import SHELL, WEB, FrameworkJob
from jobs.node.network.names import join_name
from jobs.node.staging.mount_paths import WORK
from jobs.node.supervisor import announced_ports
from jobs.node.wrapper.environment import (
    ENDPOINT_IP,
    ENDPOINTS,
    FIXED,
    INDEX_VARIABLES,
    NO_GPUS,
    job_variables,
    list_instances,
    named_variables,
    peer_variables,
    role_variables,
)
from jobs.spec import JobSpec, Port, RoleSpec

Ports = Mapping[str, tuple[int, ...]]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*", re.ASCII)
"""Names of variables that a ConfigMap and a kubelet take."""


@dataclass(frozen=True, slots=True)
class Peers:
    """The replicas of an attempt by their names in its network, and the ports of each role's replicas.

    Replicas have a network of their own each, so that ports are the same for all of a role.  Those of a
    Kubeflow `kind` have the names that its operator gives them.
    """

    key: str
    labels: tuple[str, ...]
    ports: tuple[Ports, ...]
    kind: JobKind | None = None

    @classmethod
    def of(cls, submission: Submission, config: KubernetesConfig, kind: JobKind | None = None) -> Peers:
        """Return those of a submission."""
        roles = submission.spec.roles
        ports = tuple(assign_ports(role, config.ports) for role in roles)
        labels = name_roles(kind, [(role.name, role.replicas) for role in roles])
        return cls(submission.key, tuple(labels), ports, kind)

    def name(self, role: int, index: int) -> str:
        """Return the host name of a replica of the role at that position."""
        return join_name("", self.labels[role], index)

    def address(self, role: int, index: int) -> str:
        """Return the name by which the others reach it (`jobs.node.frameworks.job.Endpoints`)."""
        name = self.name(role, index)
        return f"{self.key}-{name}" if self.kind else f"{name}.{self.key}"

    def port(self, role: int, _index: int, label: str) -> str:
        """Return the replica's first port with a label."""
        return str(self.ports[role][label][0])

    def framework_job(self, spec: JobSpec, job_id: str) -> FrameworkJob:
        """Return the job as its framework sees it."""
        return make_framework_job(spec, job_id, self, checks_nodes=spec.sanity_check.enabled)


def assign_ports(role: RoleSpec, span: tuple[int, int]) -> Ports:
    """Return the ports of each replica of the role, by label: fixed ones, and free ones from `span` on."""
    fixed = {
        port.label: tuple(range(port.begin_at, port.begin_at + port.count)) for port in _fixed_ports(role)
    }
    taken = set(chain.from_iterable(fixed.values()))
    free = (port for port in range(span[0], LAST + 1) if port not in taken)
    implicit = [
        Port(label=label) for label in (WEB, SHELL) if label not in {each.label for each in role.ports}
    ]
    return {
        port.label: fixed.get(port.label) or tuple(islice(free, port.count))
        for port in (*role.ports, *implicit)
    }


def _fixed_ports(role: RoleSpec) -> list[Port]:
    return [port for port in role.ports if port.begin_at]


def shared_variables(submission: Submission, peers: Peers, config: KubernetesConfig) -> dict[str, str]:
    """Return the variables that are the same for all replicas."""
    spec, job = submission.spec, peers.framework_job(submission.spec, submission.job_id)
    person = submission.person.name
    found: dict[str, str] = {
        **job_variables(
            {role.name: role.replicas for role in spec.roles},
            person,
            spec.name,
            locations(submission, config),
        ),
        "PAI_VIRTUAL_CLUSTER": submission.virtual_cluster,
        "APP_ID": submission.key,
        "JOB_NAME": submission.job_id,
        "PYTHONUNBUFFERED": "1",
        "HOME": WORK,
        "USER": person,
        "LOGNAME": person,
        "PAI_WORK_DIR": WORK,
        ENDPOINTS: f"{WORK}/{announced_ports.NAME}",
        ENDPOINT_IP: "127.0.0.1",
        "MASTER_ADDR": job.master_address,
        "MASTER_PORT": job.master_port(),
    }
    for position, role in enumerate(spec.roles):
        found |= named_variables(role.name, role.replicas, role.resources, role.completion)
        ports = {label: _join(each) for label, each in peers.ports[position].items()}
        found |= peer_variables(job, position, [ports] * role.replicas)
    found["PAI_TASK_ROLE_INSTANCES"] = list_instances(job)
    found |= registry.shared_variables(job)
    return {name: value for name, value in found.items() if _NAME.fullmatch(name)}


def locations(submission: Submission, config: KubernetesConfig) -> dict[str, str]:
    """Return where the job finds its data, output and code, by purpose."""
    found: dict[str, str] = {}
    for mount in submission.spec.mounts:
        inner = INNER_DATA if is_data_dir(submission, mount, config) else ""
        if (source := find_source(submission)) is not None and source.uri == mount.uri and not mount.path:
            inner = find_path(source)
        found.setdefault(mount.purpose.value, mount.path or inner or mount.uri)
    return found


def replica_variables(spec: JobSpec, peers: Peers, position: int, index: int, job_id: str) -> dict[str, str]:
    """Return the variables of one replica, and what the job file sets."""
    role, job, ports = spec.roles[position], peers.framework_job(spec, job_id), peers.ports[position]
    rank = str(job.count_before(position) + index)
    found: dict[str, str] = {
        **role_variables(role.name, role.replicas, role.resources, role.completion),
        **dict.fromkeys(INDEX_VARIABLES, str(index)),
        "PAI_CONTAINER_ID": f"{peers.key}-{peers.name(position, index)}",
        "PAI_CONTAINER_HOST_PORT": _join(ports[WEB][:1]),
        "PAI_CURRENT_CONTAINER_PORT": _join(ports[WEB][:1]),
        "PAI_CONTAINER_SSH_PORT": _join(ports[SHELL][:1]),
        "PAI_CONTAINER_HOST_PORT_LIST": "".join(f"{label}:{_join(each)};" for label, each in ports.items()),
        **{f"PAI_CONTAINER_HOST_{label}_PORT_LIST": _join(each) for label, each in ports.items()},
        "CUSTOM_PORTS": ";".join(str(each) for port in role.ports for each in ports[port.label]),
        "RANK": rank,
        **registry.own_variables(spec.framework, rank, str(int(rank == "0")), job.roles[position].processes),
        **_tensorflow(spec, job, position, index),
        **{name: value for name, value in {**spec.env, **role.env}.items() if name not in FIXED},
        **({} if role.resources.gpus else NO_GPUS),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }
    return {name: value for name, value in found.items() if _NAME.fullmatch(name)}


def template_variables(spec: JobSpec, peers: Peers, position: int, job_id: str) -> dict[str, str]:
    """Return the variables that are the same for all replicas of a role, and what the job file sets."""
    own = {**spec.env, **spec.roles[position].env}
    differing = {*INDEX_VARIABLES, "PAI_CONTAINER_ID", "RANK", "TF_CONFIG"}
    differing |= registry.own_variables(spec.framework, "", "", "").keys()
    found = replica_variables(spec, peers, position, 0, job_id)
    return {name: value for name, value in found.items() if name not in differing or name in own}


def export_rank(spec: JobSpec, peers: Peers, position: int, job_id: str) -> str:
    """Return a script that sets what depends on the rank, which the operator or the index tells."""
    job, own = peers.framework_job(spec, job_id), {**spec.env, **spec.roles[position].env}
    processes = job.roles[position].processes
    rank = f"$(({job.count_before(position)} + {INDEX_VARIABLES[0]}))"
    values = registry.own_variables(spec.framework, "$RANK", "$((RANK == 0))", processes)
    lines = [f'{name}="{value}"' for name, value in values.items() if name not in own]
    return "".join(f"export {line}\n" for line in (f'RANK="${{RANK:-{rank}}}"', *lines))


def _tensorflow(spec: JobSpec, job: FrameworkJob, position: int, index: int) -> dict[str, str]:
    if not tensorflow.has_config(spec.framework, {role.name: role.replicas for role in spec.roles}):
        return {}
    places = tensorflow.cluster_roles(role.name for role in spec.roles)
    config = {
        "cluster": {name: job.list_addresses(at) for at, name in places},
        "task": {"type": spec.roles[position].name.lower(), "index": index},
        "environment": "cloud",
    }
    return {"TF_CONFIG": json.dumps(config)}


def _join(ports: Sequence[int]) -> str:
    return ",".join(map(str, ports))
