"""Support of each field of a job on a Slurm cluster (`jobs.backends.support`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.backends.settings import mark as _
from jobs.backends.support import (
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
)
from jobs.node.frameworks import ray

_SLURM: Final = "jobs/backends/slurm/test_jobs.py"
_STAGING: Final = "jobs/backends/slurm/test_staging.py"
_FORGIVEN: Final = "test_chief_success_ends_servers_and_tolerates_failures"
_NODES: Final = "test_roles_run_on_any_allowed_node_and_avoid_excluded_nodes"
_ORDER: Final = "test_init_containers_run_in_order_and_sidecar_ends_with_command_on_slurm"
_LIMIT: Final = "test_time_limit_ends_job_after_warning_signal"

_CONTAINERS: Final = "jobs/backends/slurm/test_containers.py"
_BESIDE: Final = _(
    "Processes of the replica's step, each of which needs a command. They share its resources, without its "
    "GPUs. Apptainer runs them in images of their own; elsewhere they have the role's."
)

SUPPORT: Final[Mapping[str, Support]] = {
    "instance_role": honour(
        "jobs/access/test_role_credentials.py::test_job_of_aws_role_reads_credentials_with_the_real_sdk",
        _(
            "A server beside each replica gives the credentials to the job's user. Refused with an image of "
            "Pyxis or Slurm itself, and for a script that Slurm runs on several nodes."
        ),
    ),
    "name": honour(
        f"{_SLURM}::test_variables_and_secrets_arrive_unchanged",
        _("Available inside the job; the cluster's queue shows a key instead."),
    ),
    "framework": honour(
        "frameworks/test_mpi.py::test_mpirun_spans_replicas_and_its_exit_is_jobs",
        _(
            "A Ray job is a Ray cluster of its replicas, whose head runs the command. "
            "MPI's launcher runs the command and mpirun starts processes in all replicas; torchrun, "
            "TF_CONFIG and XGBoost's tracker span them. OneFlow and Data-Juicer get the common variables."
        ),
    ),
    "framework_options": approximate(
        RAY_OPTIONS,
        "frameworks/test_ray.py::test_ray_driver_spans_replicas_in_runtime_env_and_serves_dashboard",
        members=ray.OPTIONS,
    ),
    "roles[].name": honour(f"{_SLURM}::test_roles_receive_their_ranks_peers_and_gpus"),
    "roles[].replicas": honour(f"{_SLURM}::test_roles_receive_their_ranks_peers_and_gpus"),
    "roles[].image": approximate(
        _(
            "Run by Pyxis, Apptainer or Slurm itself, depending on the cluster settings; rejected "
            "if none is configured."
        ),
        f"{_SLURM}::test_image_job_is_refused_unless_admin_allows_run_without_image",
    ),
    "roles[].resources.cpu_milli": approximate(
        _("Rounded up to whole CPUs."), f"{_SLURM}::test_replica_receives_exactly_requested_resources"
    ),
    "roles[].resources.memory_mib": honour(f"{_SLURM}::test_replica_receives_exactly_requested_resources"),
    "roles[].resources.shm_mib": keep(_("The job uses the shared memory of its node.")),
    "roles[].resources.disk_mib": keep(
        _("The job uses its node's disk without a separate limit; Slurm's --tmp is a minimum.")
    ),
    "roles[].resources.gpus": honour(f"{_SLURM}::test_replica_receives_exactly_requested_resources"),
    "roles[].resources.gpu_type": honour(f"{_SLURM}::test_replica_receives_exactly_requested_resources"),
    "roles[].resources.rdma": approximate(
        _("Sets NCCL_IB_DISABLE=0, and requests nodes with the feature that the cluster settings name."),
        f"{_SLURM}::test_replica_receives_exactly_requested_resources",
    ),
    "roles[].ports": honour(f"{_SLURM}::test_requested_port_is_passed_to_job_and_reported"),
    "roles[].completion.min_failed": honour(f"{_SLURM}::{_FORGIVEN}"),
    "roles[].completion.min_succeeded": honour(f"{_SLURM}::{_FORGIVEN}"),
    "roles[].env": honour(f"{_SLURM}::test_variables_and_secrets_arrive_unchanged"),
    "roles[].nodes.only": honour(f"{_SLURM}::{_NODES}"),
    "roles[].nodes.never": honour(f"{_SLURM}::{_NODES}"),
    "roles[].nodes.labels": approximate(
        _("Labels with the value true are requested as node features; other labels are ignored."),
        f"{_SLURM}::test_job_runs_on_node_with_requested_feature",
    ),
    "roles[].init_containers": honour(f"{_CONTAINERS}::{_ORDER}", _BESIDE),
    "roles[].sidecars": honour(f"{_CONTAINERS}::{_ORDER}", _BESIDE),
    "roles[].shared_paths": honour(f"{_CONTAINERS}::{_ORDER}"),
    "env": honour(f"{_SLURM}::test_variables_and_secrets_arrive_unchanged"),
    "secret_env": honour(f"{_SLURM}::test_variables_and_secrets_arrive_unchanged"),
    "registry_auth": keep(_("Nodes log in to registries with their own credentials.")),
    "mounts[].purpose": honour(f"{_STAGING}::test_mounts_are_at_requested_paths"),
    "mounts[].uri": honour(
        f"{_STAGING}::test_mapped_address_is_folder_of_nodes",
        NODE_MOUNTS,
    ),
    "mounts[].path": honour(
        f"{_STAGING}::test_mounts_are_at_requested_paths",
        _("Any path where the nodes allow user namespaces; otherwise only below the working folder."),
    ),
    "mounts[].read_only": honour(f"{_STAGING}::test_mounts_are_at_requested_paths"),
    "mounts[].options": approximate(
        OPTIONS_OF_MEMORY,
        f"{_STAGING}::test_mounts_are_at_requested_paths",
        MOUNT_OPTIONS,
        MOUNT_OPTION_REASONS,
    ),
    "code": honour(f"{_STAGING}::test_repository_code_is_staged_at_requested_commit"),
    "code.uri": honour(
        f"{_STAGING}::test_code_archive_and_code_dir_of_hdfs_are_staged_on_nodes",
        NODE_CODE,
    ),
    "code.submodules": honour(f"{_STAGING}::test_submodules_are_staged_on_nodes", OWN_HOST),
    "requirements": honour(f"{_STAGING}::test_packages_are_installed_from_requirements_in_code"),
    "requirements.directory": honour(
        f"{_STAGING}::test_packages_are_installed_from_requirements_in_code", LIBRARY_FILES
    ),
    "software": honour(f"{_STAGING}::test_virtual_environment_is_active_at_command_start"),
    "time_limit_s": honour(f"{_SLURM}::{_LIMIT}"),
    "end_signal": honour(f"{_SLURM}::{_LIMIT}"),
    "keep_failed_s": approximate(
        _("Folders of all replicas are kept until the job's files are deleted."),
        f"{_SLURM}::test_failed_replica_folder_is_retained",
    ),
    "cpu_affinity": approximate(
        _("Requested from Slurm, which binds tasks to cores where its plugin for that is on."),
        f"{_SLURM}::test_replica_receives_exactly_requested_resources",
    ),
    "tensorboard": approximate(
        _("Runs on the first replica's node until the job ends, if TensorBoard is installed there."),
        "jobs/backends/slurm/test_tensorboard.py::test_tensorboard_runs_beside_the_first_replica_until_the_job_ends",
    ),
}
