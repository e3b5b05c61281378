"""Plans of attempts on Ray: what the driver and the replica runners are given, and refusals.

A plan is that of `jobs.node.supervisor.plan`.  What is known on the nodes alone is left open in it:
addresses, ports and GPUs, the user, and where programs are.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from jobs.backends import fixed_ports
from jobs.backends.base import Submission
from jobs.backends.ray.config import KEEP_FREE_MIB, LOG_MIB, PREPARE_S, RayConfig
from jobs.backends.refusals import refusal, refuse_missing_secrets, refuse_restricted
from jobs.backends.remote import records
from jobs.backends.staging import code_sources, containers, job_folders, job_secrets, tracking
from jobs.backends.staging import tensorboard as staged_tensorboard
from jobs.backends.staging.mounts import BucketPlace, MountContext, MountPlanner
from jobs.backends.staging.planned_roles import (
    implicit_ports,
    plan_role,
    plan_tensorboard,
    started_roles,
)
from jobs.backends.staging.remotes import Remote
from jobs.backends.staging.transfer_orders import SIGNED, refuse_writing
from jobs.facilities import StorageMapping
from jobs.node.sandbox.folders import FolderGrant, Requester
from jobs.node.sandbox.isolation import Isolation
from jobs.node.staging.mount_specs import DataSpec, PackageSpec
from jobs.node.supervisor import checkpoints
from jobs.node.supervisor.plan import EndWarning, MachineSettings, Plan, Role, Slot
from jobs.spec import Framework, JobSpec, Mount, Port, resource_requests

LOG_MIB_S: Final = 20
PLAN: Final = "plan"
"""The file of an attempt that its driver and runners fetch."""


class NodeMounts(MountPlanner):
    """Mounts on nodes whose file systems the console does not see: they are looked at there."""

    def grant(self, path: str) -> FolderGrant:
        """Return all rights: jobs can do there what Ray's user can."""
        return FolderGrant(path, write=True, steady=True)

    def check_there(self, path: str, most: int | None = None) -> None:
        """Refuse nothing: only the node knows."""

    def read_bucket(self, mapping: StorageMapping, shown: str) -> BucketPlace:
        """Return that its objects have addresses which the console signs: its keys stay there."""
        return Remote(SIGNED, shown), "", ()

    def _bring(self, mount: Mount, found: Remote, path: str, uri: str, inside: tuple[str, ...]) -> None:
        """See `MountPlanner`."""
        if found.uri == SIGNED:
            refuse_writing(mount, found.shown)
        super()._bring(mount, found, path, uri, inside)

    def _transfer(self, bound: int, place: Remote, inside: tuple[str, ...]) -> DataSpec:
        """See `MountPlanner`.  Jobs reach all addresses by themselves anyway."""
        return replace(super()._transfer(bound, place, inside), inside=None)


def check(submission: Submission, config: RayConfig) -> NodeMounts:
    """Return the job's mounts; raise Refused for what this cluster will never run."""
    spec = submission.spec
    refuse_missing_secrets(submission, job_secrets.list_names(submission, config.code()))
    refuse_restricted(submission)
    if spec.instance_role:
        raise refusal("role_without_network", role=spec.instance_role)
    if spec.framework is Framework.SLURM and spec.replicas > 1:
        raise refusal("only_slurm", nodes=spec.replicas)
    for role in spec.roles:
        containers.check(role, is_contained=False)
        if role.image and not config.allow_plain:
            raise refusal("no_image_engine", image=role.image)
    return _plan_mounts(submission, config)


def _plan_mounts(submission: Submission, config: RayConfig) -> NodeMounts:
    spec, person = submission.spec, submission.person
    context = MountContext(
        asker=Requester(submission.workspace, person.name),
        owner=(os.geteuid(), os.getegid()),
        job=spec.name,
        isolation=Isolation.NONE,
        contained=False,
        plain=True,
        staged=False,
    )
    found = NodeMounts(config.mount_settings(), context, submission.uploads, submission.storage)
    for mount in spec.mounts:
        uri = found.resolve(mount.uri)
        if uri.startswith(job_folders.SCHEME):
            raise refusal("mount_no_job", place=mount.uri)
        if code_sources.is_code_dir_elsewhere(mount, uri) and found.find_mapping(uri) is None:
            path = code_sources.add_code_dir(uri, config.code(), found, spec.env)
            found.locations.setdefault(mount.purpose.value, path)
        else:
            found.lay(mount)
    if spec.code is not None:
        source = code_sources.resolve_source(spec.code, config.code())
        code_sources.add_code(source, config.code(), found, spec.env)
    containers.lay_shared(spec, found)
    if (board := staged_tensorboard.log_path(spec)) is not None:
        found.lay_log_folder(board, ())
    if config.checkpoints and not submission.is_check:
        found.lay_checkpoints(job_folder(submission.key, config) / "attempt")
    return found


def job_folder(key: str, config: RayConfig) -> Path:
    """Return the folder, below the shared one, of the job that an attempt's key names."""
    return Path(config.checkpoints, key.rpartition("-")[0])


def make_plan(submission: Submission, config: RayConfig, mounts: MountPlanner) -> Plan:
    """Return the attempt's plan, with empty slots."""
    spec = submission.spec
    requirements = spec.requirements
    packages = None
    if requirements.packages or requirements.directory:
        packages = PackageSpec(requirements.packages, requirements.directory, PREPARE_S, 0)
    return Plan(
        key=submission.key,
        job=submission.job_id,
        attempt=submission.attempt,
        name=spec.name,
        user=submission.person.name,
        uid=0,
        gid=0,
        virtual_cluster=submission.virtual_cluster,
        framework=spec.framework,
        created_at=time.time(),
        boot="",
        env={**({checkpoints.VARIABLE: mounts.checkpoints} if mounts.checkpoints else {}), **spec.env},
        locations=mounts.locations,
        time_limit_s=spec.time_limit_s,
        warned=EndWarning(spec.end_signal.signal, spec.end_signal.seconds_before)
        if spec.end_signal
        else None,
        grace_s=spec.grace_s,
        keep_failed_s=0,
        house=_machine_settings(config),
        roles=_plan_roles(spec, mounts.shm_mib),
        bounds=tuple(mounts.bounds),
        codes=tuple(replace(code, shut=False) for code in mounts.codes),
        packages=packages,
        datas=tuple(replace(data, look=True, back=False) for data in mounts.datas)
        if submission.is_check
        else tuple(mounts.datas),
        tensorboard=plan_tensorboard(spec, has_own=False),
        checks_nodes=spec.sanity_check.enabled,
        restarts_replicas=spec.restarts_replicas,
    )


def _plan_roles(spec: JobSpec, shm_mib: int) -> tuple[Role, ...]:
    asks = zip(started_roles(spec), resource_requests(spec), strict=True)
    return tuple(plan_role(role, ask, [Slot()] * role.replicas, shm_mib) for role, ask in asks)


def _machine_settings(config: RayConfig) -> MachineSettings:
    return MachineSettings(
        node="",
        host_ip="",
        isolation=Isolation.NONE,
        hide=(),
        show=(),
        path=os.defpath,
        limits="watchdog",
        pids=0,
        log_mib=LOG_MIB,
        log_mib_s=LOG_MIB_S,
        keep_free_mib=KEEP_FREE_MIB,
        port_range=config.ports,
    )


def render_given(
    submission: Submission,
    config: RayConfig,
    plan: Plan,
    bundles: Sequence[tuple[Mapping[str, float], Mapping[str, str]]],
    resumed: checkpoints.Checkpoint | None,
) -> str:
    """Return the file `PLAN`: the plan, and what is beside it.

    `bundles` are the resources and the labels of nodes of each role's replicas.
    """
    given: dict[str, Any] = {
        "plan": plan.dump(),
        "limits": plan.limits(),
        "bundles": [resources for resources, _labels in bundles],
        "labels": [labels for _resources, labels in bundles],
        "ports": [
            [[_request_port(port, index) for port in ports] for index in range(role.replicas)]
            for role, ports in zip(submission.spec.roles, list_ports(submission.spec), strict=True)
        ],
        "span": list(config.ports),
        "resumed": resumed.dump() if resumed else None,
        "tracking": None,
    }
    if tracking.is_offered(submission, config.console_url):
        given["tracking"] = [tracking.URI, f"{config.console_url}/mlflow/{submission.key}"]
    return json.dumps(given, ensure_ascii=False)


def _request_port(port: Port, index: int) -> tuple[str, int, int]:
    """Return the label, the first number (0 for any) and the count of a replica's port."""
    return port.label, fixed_ports.first_port(port, index) if port.begin_at else 0, port.count


def list_ports(spec: JobSpec) -> list[tuple[Port, ...]]:
    """Return the ports of a replica of each role, the implicit ones first."""
    return [(*implicit_ports(spec, place), *role.ports) for place, role in enumerate(spec.roles)]


def render_secrets(
    submission: Submission,
    config: RayConfig,
    mounts: MountPlanner,
    signed: Mapping[str, Sequence[Any]] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return what is secret of the job, for its replicas alone, with the `signed` addresses of objects."""
    found = job_secrets.secrets_of(submission, config.code(), mounts)
    for login, data in zip(found.get("data", ()), mounts.datas, strict=True):
        if data.uri == SIGNED:
            login["objects"] = {data.name: signed.get(data.name)}
    job_secrets.add_key(found, submission.spec)
    if tracking.is_offered(submission, config.console_url):
        found["env"][tracking.TOKEN] = submission.tracking_token
    return found


def render_record(submission: Submission, config: RayConfig) -> str:
    """Return the attempt's record as JSON."""
    spec = submission.spec
    ports = [fixed_ports.number_each(each) for each in list_ports(spec)]
    return records.render(
        spec,
        config.ports,
        ports,
        is_contained=lambda _role: False,
        apart=True,
        makes_token=True,
        checks_nodes=spec.sanity_check.enabled,
    )
