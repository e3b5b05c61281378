"""Environment variables of a job: pure functions of the plan.

Three vendors' words for the same facts, so that commands written for them run as they are: OpenPAI
v0.14 and v2 (`PAI_*`), DLC page (`MASTER_ADDR` … `JOB_NAME`), AIHC page (`AIHC_JOB_NAME`).

What the job file says wins over what is told here, as with OpenPAI, except for the names in `FIXED`:
a job can't talk itself onto a GPU that somebody else was given.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from jobs.node import marks
from jobs.node.frameworks import registry, tensorflow
from jobs.node.frameworks.job import (
    SHELL,
    WEB,
    Amounts,
    FrameworkJob,
    FrameworkRole,
    count_processes,
    count_tolerated,
)
from jobs.node.staging import pip
from jobs.node.staging.mount_paths import WORK
from jobs.node.supervisor import announced_ports
from jobs.node.supervisor.plan import Plan, PlannedReplica, Slot
from jobs.node.wrapper import tensorboard

IMPLICIT_PORTS: Final = (WEB, SHELL)
"""Every replica has these even if its role asks for none (OpenPAI v0.14)."""

FILE_SYSTEM: Final = "file_system"
"""Among a plan's locations: the folder that stands for OpenPAI's default file system."""

HOME_FOLDER: Final = "home"
"""Likewise: the person's home folder, which outlives the job."""

LOCATION_VARIABLES: Final = {"data": "PAI_DATA_DIR", "output": "PAI_OUTPUT_DIR", "code": "PAI_CODE_DIR"}
"""Purpose of a place outside the job → the variable that tells it (OpenPAI v0.14)."""

HOME_VARIABLE: Final = "JOB_CONSOLE_HOME_FOLDER"

INDEX_VARIABLES: Final = (
    "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX",
    "PAI_TASK_INDEX",
    "PAI_TASK_ROLE_INDEX",
)

MARK: Final = marks.REPLICA

COMPANION: Final = "JOB_CONSOLE_COMPANION"
"""Names what runs besides a replica's command, so that its processes are not taken for the command's."""

FIXED: Final = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES", MARK, COMPANION)

NO_GPUS: Final = {"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"}


def companion_variables(name: str) -> dict[str, str]:
    """Return what a companion of that name has beyond the replica's environment."""
    return {**NO_GPUS, COMPANION: name}


PEERS_FILE: Final = "JOB_CONSOLE_PEERS_FILE"
"""Names the file that holds what did not fit: `NAME='value'` lines for a shell to source."""

ENDPOINTS: Final = "JOB_CONSOLE_ENDPOINTS"
"""Names the file in which the job announces ports (`jobs.node.supervisor.announced_ports`)."""

ENDPOINT_IP: Final = "JOB_CONSOLE_ENDPOINT_IP"
"""Names the address at which an endpoint has to listen for the console to reach it."""

MOST_BYTES: Final = 512 * 1024
LONGEST: Final = 96 * 1024
"""An exec takes strings up to 128 KiB, and a quarter of the stack limit (2 MiB) in all; this leaves
the job room for variables of its own."""

MOST_PEER_VARIABLES: Final = 1500
"""Each bash that a job starts reads all variables: 0.15 s of CPU for 4,000, a quarter for half as many."""


class Completion(Protocol):
    """How many replicas of a role decide how the job ends."""

    @property
    def min_failed(self) -> int | None: ...
    @property
    def min_succeeded(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class ReplicaPaths:
    """Paths as a replica sees them: its own folder, its temporary folder ('' in a container, which has
    one), the peers file, and the folder of programs that a machine may lack ('' in a container).
    """

    work: str
    tmp: str
    peers: str = ""
    programs: str = ""

    def resolve_inside(self, place: str) -> str:
        """A place as the replica finds it: what lies below `/job` is in its own folder."""
        below = place.removeprefix(WORK)
        return self.work + below if place != below and below[:1] in ("", "/") else place


def build(
    plan: Plan, place: PlannedReplica, told: Mapping[str, str], room: ReplicaPaths, secrets: Mapping[str, str]
) -> dict[str, str]:
    """The whole environment of one replica.  `told` is `peers(plan)`, or what of it fits."""
    env = {**_system(plan, place, room), **told, **own(plan, place, room)}
    env.update(plan.env)
    env.update(place.role.env)
    env.update(secrets)
    if plan.packages is not None:
        env.update(pip.visible(env, room.work))
    if room.programs and env.get("PATH"):
        env["PATH"] += f":{room.programs}"
    env.update(_gpus(place.slot))
    env[MARK] = mark(plan, place)
    return env


def mark(plan: Plan, place: PlannedReplica) -> str:
    """Return what marks the processes of this replica, where nothing better does."""
    return f"{plan.key}.{place.name}"


def split_by_size(told: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """`told` as (what fits into an environment, what must go into the peers file: the end, and long ones)."""
    kept: dict[str, str] = {}
    size = 0
    for name, value in told.items():
        if len(value) > LONGEST:
            continue
        size += len(name) + len(value) + 2
        if size > MOST_BYTES or len(kept) == MOST_PEER_VARIABLES:
            break
        kept[name] = value
    return kept, {name: value for name, value in told.items() if name not in kept}


def as_shell(variables: Mapping[str, str]) -> str:
    """Lines that a POSIX shell can source; names that no shell can expand stay out."""
    lines = (
        f"export {name}='{value.replace(chr(39), chr(39) + chr(92) + chr(39) + chr(39))}'\n"
        for name, value in variables.items()
        if name.isidentifier() and name.isascii()
    )
    return "".join(lines)


def peers(plan: Plan) -> dict[str, str]:
    """Return the variables about every role and replica, the same for all of them.

    Those about the first replicas of each role come first: the end is what does not fit.
    """
    job = _framework_job(plan)
    env = {"PAI_TASK_ROLE_INSTANCES": list_instances(job)}
    found = []
    for position, role in enumerate(plan.roles):
        ports = [{label: _list(each) for label, each in slot.ports.items()} for slot in role.slots]
        env |= named_variables(role.name, role.replicas, role, role.completion)
        found.append(peer_variables(job, position, ports).items())
    return env | dict(filter(None, itertools.chain.from_iterable(itertools.zip_longest(*found))))


def peer_variables(job: FrameworkJob, position: int, ports: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the addresses and ports of a role's replicas; `ports` has each one's by label, with commas."""
    name = job.roles[position].name
    found = {f"PAI_TASK_ROLE_{name}_HOST_LIST": ",".join(job.list_addresses(position))}
    for index, own_ports in enumerate(ports):
        found[f"PAI_HOST_IP_{name}_{index}"] = job.endpoints.address(position, index)
        for label, listed in own_ports.items():
            found[f"PAI_PORT_LIST_{name}_{index}_{label}"] = listed
            found[f"PAI_{name}_{index}_{label}_PORT"] = listed
    return found


def list_instances(job: FrameworkJob) -> str:
    """Return `role:index` of every replica."""
    return ",".join(f"{role.name}:{index}" for role in job.roles for index in range(role.replicas))


def own(plan: Plan, place: PlannedReplica, room: ReplicaPaths) -> dict[str, str]:
    """Return the variables about the job, and about this replica's role, index and ports."""
    return {
        **_job(plan, room),
        **_replica(plan, place),
        **_container(plan, place, room),
        **_distributed_training(plan, place),
        **_tensorboard(plan, room),
    }


def _system(plan: Plan, place: PlannedReplica, room: ReplicaPaths) -> dict[str, str]:
    """Return the variables that any process expects.  An image has its own PATH, LANG and /tmp."""
    env = {"HOME": room.work, "USER": plan.user, "LOGNAME": plan.user, "PYTHONUNBUFFERED": "1"}
    if room.peers:
        env[PEERS_FILE] = room.peers
    if not room.tmp:
        return env
    shell = {
        "PATH": plan.house.path,
        "LANG": "C.UTF-8",
        "TMPDIR": room.tmp,
        "SHELL": "/bin/bash",
        "PWD": room.work,
    }
    return {**env, **shell}


def _job(plan: Plan, room: ReplicaPaths) -> dict[str, str]:
    places = {purpose: room.resolve_inside(place) for purpose, place in plan.locations.items()}
    return {
        **job_variables({role.name: role.replicas for role in plan.roles}, plan.user, plan.name, places),
        "PAI_VIRTUAL_CLUSTER": plan.virtual_cluster,
        "APP_ID": plan.key,
        "PAI_DEFAULT_FS_URI": plan.locations.get(FILE_SYSTEM, ""),
        "JOB_NAME": plan.job,
        **({HOME_VARIABLE: plan.locations[HOME_FOLDER]} if HOME_FOLDER in plan.locations else {}),
    }


def job_variables(
    roles: Mapping[str, int], user: str, name: str, locations: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables about a job whose `roles` have so many replicas each.

    `locations` are the places outside the job, as it finds them, by their purpose.
    """
    names, count, replicas = ",".join(roles), str(len(roles)), str(sum(roles.values()))
    framework = f"{user}~{name}"
    return {
        "PAI_JOB_NAME": name,
        "PAI_USER_NAME": user,
        "PAI_USERNAME": user,
        "PAI_FRAMEWORK_NAME": framework,
        "FRAMEWORK_NAME": framework,
        "HADOOP_USER_NAME": user,
        **{variable: locations.get(purpose, "") for purpose, variable in LOCATION_VARIABLES.items()},
        "PAI_TASK_ROLE_COUNT": count,
        "PAI_TASK_ROLES_NUM": count,
        "PAI_JOB_TASK_ROLE_COUNT": count,
        "PAI_TASK_ROLE_LIST": names,
        "PAI_JOB_TASK_ROLE_LIST": names,
        "PAI_TASKS_NUM": replicas,
        "PAI_JOB_TASK_COUNT": replicas,
        "AIHC_JOB_NAME": name,
        "WORLD_SIZE": replicas,
    }


def role_variables(name: str, replicas: int, each: Amounts, completion: Completion) -> dict[str, str]:
    """Return the variables about a replica's own role."""
    count, cpus, gpus = str(replicas), _cpus(each), str(each.gpus)
    return {
        "PAI_CURRENT_TASK_ROLE_NAME": name,
        "PAI_TASK_ROLE_NAME": name,
        "PAI_TASK_ROLE_NUM": count,
        "PAI_CURRENT_TASK_ROLE_TASK_COUNT": count,
        "PAI_CURRENT_TASK_ROLE_CPU_COUNT": cpus,
        "PAI_TASK_CPU_NUM": cpus,
        "PAI_CURRENT_TASK_ROLE_GPU_COUNT": gpus,
        "PAI_TASK_GPU_NUM": gpus,
        "PAI_CURRENT_TASK_ROLE_MEM_MB": str(each.memory_mib),
        "PAI_TASK_MEM_MB": str(each.memory_mib),
        "PAI_CURRENT_TASK_ROLE_SHM_MB": str(each.shm_mib),
        "PAI_CURRENT_TASK_ROLE_MIN_FAILED_TASK_COUNT": _or_empty(completion.min_failed),
        "PAI_CURRENT_TASK_ROLE_MIN_SUCCEEDED_TASK_COUNT": _or_empty(completion.min_succeeded),
        "PAI_RESOURCE": _resource(each),
        "NPROC_PER_NODE": str(max(1, each.gpus)),
    }


def named_variables(name: str, replicas: int, each: Amounts, completion: Completion) -> dict[str, str]:
    """Return the variables about a role that every replica of the job has."""
    return {
        f"PAI_TASK_ROLE_TASK_COUNT_{name}": str(replicas),
        f"PAI_RESOURCE_{name}": _resource(each),
        f"PAI_MIN_FAILED_TASK_COUNT_{name}": _or_empty(completion.min_failed),
        f"PAI_MIN_SUCCEEDED_TASK_COUNT_{name}": _or_empty(completion.min_succeeded),
    }


def _replica(plan: Plan, place: PlannedReplica) -> dict[str, str]:
    role = place.role
    return {
        **role_variables(role.name, role.replicas, role, role.completion),
        **{name: str(place.index) for name in INDEX_VARIABLES},
    }


def _container(plan: Plan, place: PlannedReplica, room: ReplicaPaths) -> dict[str, str]:
    ports, ip = place.slot.ports, plan.address(place.position)
    http, ssh = _first(ports, "http"), _first(ports, "ssh")
    asked = (port for label in place.role.labels for port in ports[label])
    return {
        "PAI_CONTAINER_ID": f"{plan.key}-{place.name}",
        "PAI_CONTAINER_HOST_IP": ip,
        "PAI_CURRENT_CONTAINER_IP": ip,
        ENDPOINT_IP: "127.0.0.1" if plan.network else ip,
        "PAI_CONTAINER_HOST_PORT": http,
        "PAI_CURRENT_CONTAINER_PORT": http,
        "PAI_CONTAINER_SSH_PORT": ssh,
        "PAI_CONTAINER_HOST_PORT_LIST": "".join(f"{label}:{_list(p)};" for label, p in ports.items()),
        **{f"PAI_CONTAINER_HOST_{label}_PORT_LIST": _list(p) for label, p in ports.items()},
        "PAI_WORK_DIR": room.work,
        ENDPOINTS: f"{room.work}/{announced_ports.NAME}",
        "CUSTOM_PORTS": ";".join(str(port) for port in asked),
    }


def _distributed_training(plan: Plan, place: PlannedReplica) -> dict[str, str]:
    """Return the rank and what the framework needs; rank 0 is the leading role's first replica (DLC page)."""
    job = _framework_job(plan)
    rank = str(job.count_before(place.ordinal) + place.index)
    return {
        "MASTER_ADDR": job.master_address,
        "MASTER_PORT": job.master_port(),
        "RANK": rank,
        **registry.shared_variables(job),
        **registry.own_variables(
            plan.framework, rank, str(int(rank == "0")), job.roles[place.ordinal].processes
        ),
        **_tensorflow(plan, place),
    }


def _framework_job(plan: Plan) -> FrameworkJob:
    roles = (
        FrameworkRole(
            role.name,
            role.replicas,
            count_processes(role.gpus, {**plan.env, **role.env}),
            count_tolerated(role.replicas, role.completion.min_failed),
            role.restarts,
        )
        for role in plan.roles
    )
    return FrameworkJob(
        plan.framework, plan.job, tuple(roles), _PlanEndpoints(plan), checks_nodes=plan.checks_nodes
    )


def _tensorflow(plan: Plan, place: PlannedReplica) -> dict[str, str]:
    if not tensorflow.has_config(plan.framework, {role.name: role.replicas for role in plan.roles}):
        return {}
    job, names = _framework_job(plan), [role.name for role in plan.roles]
    config = {
        "cluster": {name: job.list_addresses(at) for at, name in tensorflow.cluster_roles(names)},
        "task": {"type": place.role.name.lower(), "index": place.index},
        "environment": "cloud",
    }
    return {"TF_CONFIG": json.dumps(config)}


def _tensorboard(plan: Plan, room: ReplicaPaths) -> dict[str, str]:
    board = plan.tensorboard
    return {tensorboard.LOG_PATH: room.resolve_inside(board.path)} if board else {}


class _PlanEndpoints:
    """Addresses and ports of a plan's replicas (`jobs.node.frameworks.job.Endpoints`)."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._before = list(itertools.accumulate((role.replicas for role in plan.roles), initial=0))

    def address(self, role: int, index: int) -> str:
        """Return the address of a replica."""
        return self._plan.address(self._before[role] + index)

    def port(self, role: int, index: int, label: str) -> str:
        """Return the replica's first port with a label."""
        return _first(self._plan.roles[role].slots[index].ports, label)


def _gpus(slot: Slot) -> dict[str, str]:
    """By index, in the order in which the driver counts them; nothing when none was asked for."""
    indexes = _list(slot.gpus)
    return {
        "CUDA_VISIBLE_DEVICES": indexes,
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "NVIDIA_VISIBLE_DEVICES": indexes or "void",
    }


def _resource(each: Amounts) -> str:
    return f"{each.gpus},{_cpus(each)},{each.memory_mib},{each.shm_mib}"


def _cpus(each: Amounts) -> str:
    return f"{each.cpu_milli / 1000:g}"


def _first(ports: Mapping[str, tuple[int, ...]], label: str) -> str:
    return str(ports[label][0])


def _list(numbers: Iterable[int]) -> str:
    return ",".join(str(number) for number in numbers)


def _or_empty(value: int | None) -> str:
    return "" if value is None else str(value)
