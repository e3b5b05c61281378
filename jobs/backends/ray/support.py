"""Support of each field of a job on a Ray cluster (`jobs.backends.support`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.backends.settings import mark as _
from jobs.backends.support import (
    CONTRACT,
    LIBRARY_FILES,
    MOUNT_OPTION_REASONS,
    MOUNT_OPTIONS,
    NODE_CODE,
    NODE_MOUNTS,
    OPTIONS_OF_MEMORY,
    OWN_HOST,
    RAY_OPTIONS,
    Support,
    approximate,
    honour,
    keep,
    refuse,
)
from jobs.node.frameworks import ray

_JOBS: Final = "jobs/backends/ray/test_jobs.py"
_STAGING: Final = "jobs/backends/ray/test_staging.py"
_ROLES: Final = f"{_JOBS}::test_roles_on_several_nodes_receive_peers_gpus_code_and_secrets"
_STAGED: Final = f"{_STAGING}::test_code_packages_folders_and_containers_are_staged_on_the_node"
_FETCHED: Final = f"{_STAGING}::test_archive_and_bucket_are_fetched_on_the_node_without_the_keys_of_the_site"
_LIMITED: Final = f"{_JOBS}::test_replica_over_its_memory_and_job_over_its_time_are_ended"
_CHOSEN: Final = f"{_JOBS}::test_replica_runs_on_chosen_node_and_its_failure_ends_the_job"
_BESIDE: Final = _("Processes of the replica, each of which needs a command. They share its resources.")

SUPPORT: Final[Mapping[str, Support]] = {
    "name": honour(_ROLES),
    "framework": honour(
        _ROLES,
        _(
            "A Ray job is a Ray cluster of its replicas, beside the one that it runs on. The other "
            "frameworks get their variables; a Slurm job has one node."
        ),
    ),
    "framework_options": approximate(
        RAY_OPTIONS,
        "frameworks/test_ray.py::test_ray_driver_spans_replicas_in_runtime_env_and_serves_dashboard",
        members=ray.OPTIONS,
    ),
    "roles[].name": honour(_ROLES),
    "roles[].replicas": honour(_ROLES),
    "roles[].image": refuse(
        _("Refused, or run without the image if the cluster settings allow that."),
        f"{CONTRACT}::test_refusal_is_final_and_leaves_nothing",
    ),
    "roles[].resources.cpu_milli": approximate(_("Counted by Ray; CPU time is not limited."), _ROLES),
    "roles[].resources.memory_mib": honour(_LIMITED),
    "roles[].resources.shm_mib": keep(_("The job uses the shared memory of its node.")),
    "roles[].resources.disk_mib": keep(_("The job uses its node's disk without a limit.")),
    "roles[].resources.gpus": honour(_ROLES),
    "roles[].resources.gpu_type": honour(_ROLES),
    "roles[].resources.rdma": approximate(
        _("Sets NCCL_IB_DISABLE=0; the job has its node's InfiniBand devices, if there are any."),
        "jobs/backends/staging/test_software.py::test_bccl_and_rdma_set_their_variables",
    ),
    "roles[].ports": honour(
        "jobs/backends/ray/test_sessions.py::test_replica_is_entered_by_listener_and_its_ports_are_reached"
    ),
    "roles[].completion.min_failed": honour(_CHOSEN),
    "roles[].completion.min_succeeded": honour(_CHOSEN),
    "roles[].env": honour(_ROLES),
    "roles[].nodes.only": honour(_CHOSEN),
    "roles[].nodes.never": honour(_CHOSEN),
    "roles[].nodes.labels": honour(
        "jobs/backends/ray/test_capacity.py::test_requirements_select_nodes_by_names_and_labels",
        _("Ray's labels of nodes."),
    ),
    "roles[].init_containers": honour(_STAGED, _BESIDE),
    "roles[].sidecars": honour(_STAGED, _BESIDE),
    "roles[].shared_paths": approximate(_("Below the working folder only."), _STAGED),
    "env": honour(_ROLES),
    "secret_env": honour(_ROLES),
    "registry_auth": keep(_("No images are pulled on this cluster.")),
    "mounts[].purpose": honour(_STAGED),
    "mounts[].uri": honour(_FETCHED, NODE_MOUNTS),
    "mounts[].path": approximate(
        _("The folder's own path, or below the working folder for empty ones; others are refused."),
        f"{_STAGING}::test_mount_at_another_path_and_role_and_egress_policy_are_refused",
    ),
    "mounts[].read_only": approximate(_("Folders of the nodes have the rights of Ray's user.")),
    "mounts[].options": approximate(OPTIONS_OF_MEMORY, _STAGED, MOUNT_OPTIONS, MOUNT_OPTION_REASONS),
    "code": honour(_STAGED),
    "code.uri": honour(_FETCHED, NODE_CODE),
    "code.submodules": honour(_STAGED, OWN_HOST),
    "requirements": honour(_STAGED),
    "requirements.directory": honour(_STAGED, LIBRARY_FILES),
    "software": honour(_STAGED),
    "time_limit_s": honour(_LIMITED),
    "end_signal": honour(_LIMITED),
    "keep_failed_s": keep(_("Folders on the nodes are removed once the console has the logs.")),
    "cpu_affinity": keep(_("Ray pins nothing to cores.")),
    "instance_role": refuse(
        _("This cluster can't give a job credentials of its role."),
        f"{_STAGING}::test_mount_at_another_path_and_role_and_egress_policy_are_refused",
    ),
    "tensorboard": approximate(
        _("Runs on the first replica's node until the job ends, if TensorBoard is installed there."),
        "jobs/backends/ray/test_sessions.py::test_tensorboard_runs_beside_the_replica_and_is_announced",
    ),
}
