"""Admission of an attempt: a plan that gives every replica its share, or the reason for none."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from jobs.backends import fixed_ports
from jobs.backends.base import Gpu, NotSubmitted, Submission
from jobs.backends.local import gpus, machine, own_ports, uplink_allocator
from jobs.backends.local.allocations import AllocatedTotal, Allocation
from jobs.backends.local.config import LocalConfig
from jobs.backends.local.core_allocator import CoreAllocator
from jobs.backends.local.machine import Total
from jobs.backends.local.port_allocator import NoPortFree, PortAllocator
from jobs.backends.refusals import refusal, refuse_missing_secrets
from jobs.backends.staging import authfile, code_sources, containers, job_secrets, software, tracking
from jobs.backends.staging import tensorboard as staged_tensorboard
from jobs.backends.staging.mounts import MountContext, MountPlanner
from jobs.backends.staging.planned_roles import implicit_ports, plan_role, plan_tensorboard, started_roles
from jobs.facilities import HOST_NETWORK, OWN_NETWORK
from jobs.node import disk, processes
from jobs.node.network.rules import SERVICE
from jobs.node.network.service import MLFLOW_PATH
from jobs.node.sandbox import bind_mounts, isolation, role_credentials
from jobs.node.sandbox.folders import Requester
from jobs.node.sandbox.isolation import Isolation
from jobs.node.staging import data_transfer
from jobs.node.staging.mount_specs import DataSpec, PackageSpec
from jobs.node.supervisor import checkpoints
from jobs.node.supervisor.layout import Layout
from jobs.node.supervisor.plan import (
    EndWarning,
    MachineSettings,
    NetworkPlan,
    Plan,
    Role,
    Slot,
    TensorBoardPlan,
)
from jobs.node.wrapper import tensorboard
from jobs.spec import Framework, JobSpec, Port, ResourceRequest, RoleSpec, resource_requests
from jobs.states import Params, Reason, ReasonCode

_PROCESS_SHARE: Final = 8
"""A replica may have one part in so many of the processes that this machine can have."""


@dataclass(frozen=True, slots=True)
class JobRuntime:
    """Isolation and container engine (() for none) that this machine gives to a job.

    `own_network`: its replicas don't share the machine's network.
    """

    isolation: Isolation
    engine: tuple[str, ...]
    own_network: bool = False

    def contains(self, role: RoleSpec) -> bool:
        """Tell whether the role's replicas run in containers."""
        return bool(role.image and self.engine)


def refuse_impossible(submission: Submission, config: LocalConfig, runtime: JobRuntime) -> MountPlanner:
    """Raise Refused for what this machine will never run, however long one waits; return its mounts."""
    spec = submission.spec
    refuse_missing_secrets(submission, job_secrets.list_names(submission, config.code()))
    chosen = [role.nodes for role in spec.roles]
    if any((nodes.only and config.node not in nodes.only) or config.node in nodes.never for nodes in chosen):
        raise refusal("field", field="nodes")
    if spec.framework is Framework.SLURM and spec.replicas > 1:
        raise refusal("only_slurm", nodes=spec.replicas)
    for role in spec.roles:
        containers.check(role, is_contained=runtime.contains(role))
    images = [role.image for role in spec.roles if role.image]
    if images and not runtime.engine and not config.allow_plain:
        raise refusal("no_image_engine", image=images[0])
    _check_network(submission, config, runtime)
    _check_role(submission, runtime)
    if spec.software.modules and not all(map(runtime.contains, spec.roles)) and not software.has_modules():
        raise refusal("no_modules", modules=", ".join(spec.software.modules))
    total = config.total()
    for resource, most in (("cpu_milli", total.cpu_milli), ("memory_mib", total.memory_mib)):
        wanted = sum(getattr(ask, resource) * ask.replicas for ask in resource_requests(spec))
        if wanted > most:
            raise refusal("exceeds_cluster", resource=resource, wanted=wanted, total=most)
    return _lay_in(submission, config, runtime)


def _check_network(submission: Submission, config: LocalConfig, runtime: JobRuntime) -> None:
    """Raise Refused for a job that would share the machine's network although it must not."""
    if runtime.own_network or config.network == HOST_NETWORK:
        return
    image = next((role.image for role in submission.spec.roles if runtime.contains(role)), "")
    if image and config.network == OWN_NETWORK:
        raise refusal("image_without_network", image=image, engine=runtime.engine[0])
    if submission.is_restricted:
        raise refusal("egress_not_enforced", workspace=submission.workspace)


def _check_role(submission: Submission, runtime: JobRuntime) -> None:
    """Raise Refused for a job with a role of which it would get no credentials."""
    role = submission.spec.instance_role
    contained = any(map(runtime.contains, submission.spec.roles))
    if role and contained and not runtime.own_network:
        raise refusal("role_without_network", role=role)
    if role and not submission.role_provider:
        raise refusal("role_unknown", role=role)


def plan(
    submission: Submission,
    config: LocalConfig,
    runtime: JobRuntime,
    layer: MountPlanner,
    held: AllocatedTotal,
) -> Plan:
    """The attempt's plan, out of what nobody holds; raises NotSent when there is not enough now."""
    spec, total = submission.spec, config.total()
    _check_room(spec, total, held)
    free_gpus = _free_gpus(submission, config, total, held)
    asks = resource_requests(spec)
    cards: dict[str, list[tuple[int, ...]]] = {}
    for ask in sorted(asks, key=lambda ask: not ask.gpu_type):  # "any" takes nothing that another one names
        cards[ask.role] = [_cards(ask, total, free_gpus) for _ in range(ask.replicas)]
    roles, cores = [], CoreAllocator(os.sched_getaffinity(0), held.cores)
    with _awaiting_ports():
        ports = list_own_ports(spec, config) if runtime.own_network else _host_ports(spec, config, held)
    for role, ask, given in zip(started_roles(spec), asks, ports, strict=True):
        pairs = zip(cards[role.name], given, strict=True)
        slots = (Slot(mine, own, _cores(spec, ask, cores)) for mine, own in pairs)
        roles.append(plan_role(role, ask, tuple(slots), layer.shm_mib))
    return _with_uplink(make_plan(submission, config, runtime, layer, roles), config, held)


def _with_uplink(made: Plan, config: LocalConfig, held: AllocatedTotal) -> Plan:
    """Give the router a link to this machine, where it connects to anywhere and root can make one."""
    if made.network is None or not made.network.egress or os.geteuid() != 0:
        return made
    try:
        address = uplink_allocator.allocate(config.uplink_range, held.uplinks)
    except uplink_allocator.NoUplinkFree:
        params = {"resource": "uplink", "uplink_range": config.uplink_range}
        raise NotSubmitted(Reason(ReasonCode.WAITING_CAPACITY, params)) from None
    return replace(made, network=replace(made.network, uplink=address))


def check_disk(config: LocalConfig) -> None:
    """Raise NotSent while the disk has less room than its floor."""
    free = disk.free_mib(config.root) if config.disk_floor_mib else 0
    if free < config.disk_floor_mib:
        raise NotSubmitted(
            Reason(ReasonCode.DISK_LOW, {"free_mib": free, "floor_mib": config.disk_floor_mib})
        )


def make_plan(
    submission: Submission,
    config: LocalConfig,
    runtime: JobRuntime,
    layer: MountPlanner,
    roles: Sequence[Role],
) -> Plan:
    """The attempt's plan, once every role has its slots."""
    spec = submission.spec
    uid = config.uid_of(submission.person.number, runtime.isolation)
    board = _plan_board(spec)
    return Plan(
        key=submission.key,
        job=submission.job_id,
        attempt=submission.attempt,
        name=spec.name,
        user=submission.person.name,
        uid=uid,
        gid=uid,
        virtual_cluster=submission.virtual_cluster,
        framework=spec.framework,
        created_at=time.time(),
        boot=processes.boot_id(),
        env={
            **(_custom_ports(spec, config, roles) if runtime.own_network else {}),
            **({tracking.URI: f"http://{SERVICE}{MLFLOW_PATH}"} if runtime.own_network else {}),
            **(role_credentials.variables_of(submission.role_provider) if runtime.own_network else {}),
            **({checkpoints.VARIABLE: layer.checkpoints} if layer.checkpoints else {}),
            **spec.env,
        },
        locations=layer.locations,
        time_limit_s=spec.time_limit_s,
        warned=EndWarning(spec.end_signal.signal, spec.end_signal.seconds_before)
        if spec.end_signal
        else None,
        grace_s=spec.grace_s,
        keep_failed_s=spec.keep_failed_s,
        house=_machine_settings(config, runtime),
        roles=tuple(roles),
        bounds=tuple(layer.bounds),
        codes=tuple(layer.codes),
        packages=_packages(spec, config),
        datas=_datas(submission, layer),
        tools=data_transfer.tools() if _needs_tools(layer, board) else None,
        cache=_cache(submission, config, layer),
        network=NetworkPlan(config.job_range, "", submission.egress) if runtime.own_network else None,
        tensorboard=board,
        checks_nodes=spec.sanity_check.enabled,
        restarts_replicas=spec.restarts_replicas,
    )


def _needs_tools(layer: MountPlanner, board: TensorBoardPlan | None) -> bool:
    """Tell whether something of the console's own Python runs in the job."""
    return bool(layer.datas or any(code.shut for code in layer.codes) or (board and board.has_own))


def lacks_tensorboard(spec: JobSpec, config: LocalConfig, runtime: JobRuntime) -> bool:
    """Tell whether TensorBoard is to run beside the job, and nobody is known to have it."""
    board = _plan_board(spec)
    role = spec.roles[staged_tensorboard.leading_role(spec)]
    found = shutil.which(tensorboard.NAME, path=config.path)
    return board is not None and not (board.has_own or runtime.contains(role) or found)


def _plan_board(spec: JobSpec) -> TensorBoardPlan | None:
    """Return the plan of TensorBoard, which may be the console's own."""
    return plan_tensorboard(spec, has_own=importlib.util.find_spec(tensorboard.NAME) is not None)


def _lay_in(submission: Submission, config: LocalConfig, runtime: JobRuntime) -> MountPlanner:
    spec, person = submission.spec, submission.person
    contained = [runtime.contains(role) for role in spec.roles]
    uid = config.uid_of(person.number, runtime.isolation)
    ground = MountContext(
        asker=Requester(submission.workspace, person.name),
        owner=(uid, uid),
        job=spec.name,
        isolation=runtime.isolation,
        contained=any(contained),
        plain=not all(contained),
        staged=bind_mounts.works_for(runtime.engine),
    )
    layer = MountPlanner(config.mount_settings(), ground, submission.uploads, submission.storage)
    for mount in spec.mounts:
        uri = layer.resolve(mount.uri)
        if code_sources.is_code_dir_elsewhere(mount, uri) and layer.find_mapping(uri) is None:
            code_dir = code_sources.add_code_dir(uri, config.code(), layer, spec.env)
            layer.locations.setdefault(mount.purpose.value, code_dir)
        else:
            layer.lay(mount)
    if spec.registry_auth and spec.registry_auth.file_uri and ground.contained:
        layer.login = authfile.login(spec.registry_auth.file_uri, layer)
    if spec.code is not None:
        rules = config.code()
        code_sources.add_code(code_sources.resolve_source(spec.code, rules), rules, layer, spec.env)
    containers.lay_shared(spec, layer)
    if (path := staged_tensorboard.log_path(spec)) is not None:
        layer.lay_log_folder(path, [str(folder) for folder in config.show])
    layer.lay_home(person.unix_name or person.name)
    if not submission.is_check:
        layer.lay_checkpoints(Layout(config.root).attempt(submission.key))
    return layer


def allocation_of(made: Plan) -> Allocation:
    """Return the share of the machine that a plan takes."""
    slots = [slot for role in made.roles for slot in role.slots]
    of_host = slots if made.network is None else []
    return Allocation(
        sum(role.cpu_milli * role.replicas for role in made.roles),
        sum(role.memory_mib * role.replicas for role in made.roles),
        tuple(gpu for slot in slots for gpu in slot.gpus),
        tuple(port for slot in of_host for ports in slot.ports.values() for port in ports),
        made.network.uplink if made.network else "",
        tuple(core for slot in slots for core in slot.cores),
    )


def _check_room(spec: JobSpec, total: Total, held: AllocatedTotal) -> None:
    """All of it at once, or nothing (gang)."""
    for resource, free in (
        ("cpu_milli", total.cpu_milli - held.cpu_milli),
        ("memory_mib", total.memory_mib - held.memory_mib),
    ):
        wanted = sum(getattr(ask, resource) * ask.replicas for ask in resource_requests(spec))
        if wanted > free:
            raise _no_room(resource, wanted, free)


def _free_gpus(submission: Submission, config: LocalConfig, total: Total, held: AllocatedTotal) -> list[Gpu]:
    """The GPUs to choose from: those that were reserved, or for one that is not free another of its type.

    Without a reservation all that nobody holds.
    """
    free = [gpu for gpu in total.gpus if gpu.index not in held.gpus]
    mine = next((each for each in submission.reserved if each.node == config.node), None)
    if mine is None:
        return free
    chosen = [gpu for gpu in free if gpu.index in mine.indexes]
    if len(chosen) < sum(mine.gpus.values()):
        chosen = []
        for kind, count in mine.gpus.items():
            alike = [gpu for gpu in free if gpus.matches(gpu.type, kind) and gpu not in chosen]
            if len(alike) < count:
                raise _no_room("gpu", count, len(alike))
            alike.sort(key=lambda gpu: (gpu.index not in mine.indexes, gpu.index))
            chosen += alike[:count]
    return sorted(chosen, key=lambda gpu: gpu.index)


def _cards(ask: ResourceRequest, total: Total, free: list[Gpu]) -> tuple[int, ...]:
    """GPUs for one replica, taken from `free`."""
    wanted, kind = ask.gpus, ask.gpu_type
    if not wanted:
        return ()
    if not any(gpus.matches(gpu.type, kind) for gpu in total.gpus):
        raise NotSubmitted(Reason(ReasonCode.NO_SUCH_GPU, {"gpu_type": kind}))
    mine = [gpu for gpu in free if gpus.matches(gpu.type, kind)][:wanted]
    if len(mine) < wanted:
        raise _no_room("gpu", wanted, len(mine))
    for gpu in mine:
        free.remove(gpu)
    return tuple(gpu.index for gpu in mine)


def _cores(spec: JobSpec, ask: ResourceRequest, cores: CoreAllocator) -> tuple[int, ...]:
    """Return the cores that a replica is pinned to; none without CPU affinity."""
    return cores.allocate(ask.cpu_milli) if spec.cpu_affinity else ()


@contextlib.contextmanager
def _awaiting_ports() -> Iterator[None]:
    """Raise NotSubmitted where there is no port now."""
    try:
        yield
    except NoPortFree as error:
        params = {"resource": "port", "port": error.port or None}
        raise NotSubmitted(Reason(ReasonCode.WAITING_CAPACITY, params)) from error


def list_own_ports(spec: JobSpec, config: LocalConfig) -> list[list[own_ports.Ports]]:
    """Return the ports of each role's replicas, all of which have a network of their own."""
    listed = own_ports.listed_ports(spec)
    found = (
        own_ports.assign(role, implicit_ports(spec, place), config.ports, listed)
        for place, role in enumerate(spec.roles)
    )
    return [[ports] * role.replicas for ports, role in zip(found, spec.roles, strict=True)]


def _custom_ports(spec: JobSpec, config: LocalConfig, roles: Sequence[Role]) -> dict[str, str]:
    taken = (port for role in roles for ports in role.slots[0].ports.values() for port in ports)
    return own_ports.custom_ports(spec, config.ports, taken)


def _host_ports(spec: JobSpec, config: LocalConfig, held: AllocatedTotal) -> list[list[own_ports.Ports]]:
    """Return the ports of each role's replicas, which nobody else on this machine has."""
    allocator, fixed = PortAllocator(config.ports, held.ports), fixed_ports.assign(spec.roles)
    return [
        [
            _ports((*role.ports, *implicit_ports(spec, number)), fixed.get((number, index), {}), allocator)
            for index in range(role.replicas)
        ]
        for number, role in enumerate(spec.roles)
    ]


def _ports(ports: Sequence[Port], fixed: Mapping[str, int], allocator: PortAllocator) -> own_ports.Ports:
    """Ports for one replica; `fixed` are where those begin that are not free to choose."""
    return {port.label: _pick(port, fixed, allocator) for port in ports}


def _pick(port: Port, fixed: Mapping[str, int], allocator: PortAllocator) -> tuple[int, ...]:
    begin = fixed.get(port.label)
    return allocator.any(port.count) if begin is None else allocator.exactly(begin, port.count)


def _no_room(resource: str, wanted: int, free: int) -> NotSubmitted:
    params: Params = {"resource": resource, "wanted": wanted, "free": max(0, free)}
    return NotSubmitted(Reason(ReasonCode.WAITING_CAPACITY, params))


def _packages(spec: JobSpec, config: LocalConfig) -> PackageSpec | None:
    asked = spec.requirements
    if not (asked.packages or asked.directory):
        return None
    return PackageSpec(asked.packages, asked.directory, config.prepare_s, config.cache_mib << 20)


def _datas(submission: Submission, layer: MountPlanner) -> tuple[DataSpec, ...]:
    """Return the data to fetch; a dry run only lists it."""
    if not submission.is_check:
        return tuple(layer.datas)
    return tuple(replace(data, look=True, back=False) for data in layer.datas)


def _cache(submission: Submission, config: LocalConfig, layer: MountPlanner) -> str:
    asked = submission.spec.requirements
    wanted = layer.datas or asked.packages or asked.directory
    return config.cache_of(submission.person.number) if wanted else ""


def _machine_settings(config: LocalConfig, runtime: JobRuntime) -> MachineSettings:
    return MachineSettings(
        node=config.node,
        host_ip=config.host_ip,
        isolation=runtime.isolation,
        hide=isolation.hidden_paths(runtime.isolation, config.hide),
        show=tuple(str(path) for path in config.show),
        path=config.path,
        limits=config.limits,
        pids=min(config.pids, machine.most_processes() // _PROCESS_SHARE),
        engine=runtime.engine,
        gpu_devices=config.gpus is None,
        bell=str(config.bell or ""),
        log_mib=config.log_mib,
        log_mib_s=config.log_mib_s,
        keep_free_mib=config.disk_floor_mib // 2,
        work_mib=config.work_mib,
        most_ports=config.most_ports,
        port_range=config.ports if config.most_ports else (),
    )
