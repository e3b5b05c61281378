"""Support of each field of a job on this machine (`jobs.backends.support`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.backends.settings import mark as _
from jobs.backends.support import (
    LIBRARY_FILES,
    MOUNT_OPTION_REASONS,
    MOUNT_OPTIONS,
    OPTIONS_OF_MEMORY,
    OWN_HOST,
    Support,
    approximate,
    honour,
    keep,
)
from jobs.node.frameworks import ray

_LOCAL: Final = "jobs/backends/local"
_ENDINGS: Final = f"{_LOCAL}/test_endings.py"
_ENVIRONMENT: Final = "jobs/node/wrapper/test_environment.py"
_IMAGES: Final = f"{_LOCAL}/test_images.py"
_LIMITS: Final = "jobs/node/wrapper/test_cgroups.py"
_MOUNTS: Final = f"{_LOCAL}/test_mounts.py"
_CODE: Final = f"{_LOCAL}/test_code.py"
_SOURCES: Final = f"{_LOCAL}/test_code_sources.py"
_PACKAGES: Final = "jobs/node/staging/test_pip.py"
_SOFTWARE: Final = "jobs/backends/staging/test_software.py"
_NAMES: Final = f"{_LOCAL}/test_names.py"
_ROLES: Final = "jobs/access/test_role_credentials.py"
_CONTAINERS: Final = f"{_LOCAL}/test_containers.py"
_ORDER: Final = "test_init_containers_run_in_order_and_sidecar_ends_with_command"
_BESIDE: Final = _(
    "In containers where the role's image is used; otherwise as processes, each of which needs a command. "
    "They share the replica's resources, without its GPUs."
)
_ALLOCATIONS: Final = f"{_LOCAL}/test_allocations.py"

SUPPORT: Final[Mapping[str, Support]] = {
    "name": honour(f"{_ENVIRONMENT}::test_environment_has_openpai_job_and_role_variables"),
    "framework": honour(
        "frameworks/test_mpi.py::test_mpirun_spans_replicas_and_its_exit_is_jobs",
        _(
            "A Ray job is a Ray cluster of its replicas, whose head runs the command. "
            "MPI's launcher runs the command and mpirun starts processes in all replicas; torchrun, "
            "TF_CONFIG and XGBoost's tracker span them. OneFlow and Data-Juicer get the common variables; a "
            "Slurm job has one node."
        ),
    ),
    "roles[].name": honour(f"{_ALLOCATIONS}::test_role_with_unusual_name_runs"),
    "roles[].replicas": honour(f"{_ENVIRONMENT}::test_environment_has_openpai_job_and_role_variables"),
    "roles[].image": honour(
        f"{_IMAGES}::test_image_command_runs_with_job_environment",
        _("Used where Podman or Docker is installed; otherwise the cluster settings decide."),
    ),
    "roles[].resources.cpu_milli": honour(
        f"{_LIMITS}::test_replica_gets_no_more_than_requested_cpu_time",
        _("Enforced where the machine lets the console limit CPU time; otherwise only counted."),
    ),
    "roles[].resources.memory_mib": honour(f"{_LIMITS}::test_replica_over_limit_with_children_ends_whole"),
    "roles[].resources.shm_mib": honour(f"{_LIMITS}::test_shared_memory_size_is_as_requested"),
    "roles[].resources.disk_mib": approximate(
        _(
            "A replica whose /job and /tmp exceed it ends the job within seconds; a container's other "
            "folders are not counted."
        ),
        "jobs/node/wrapper/test_excess.py::test_job_with_too_large_folders_is_ended",
    ),
    "roles[].resources.gpus": honour(
        f"{_ALLOCATIONS}::test_gpu_allocation_is_exclusive_and_returned_after_use"
    ),
    "roles[].resources.gpu_type": honour(f"{_ALLOCATIONS}::test_gpu_type_matches_by_partial_name"),
    "roles[].resources.rdma": approximate(
        _("Sets NCCL_IB_DISABLE=0; the job has this machine's InfiniBand devices, if there are any."),
        "jobs/backends/staging/test_software.py::test_bccl_and_rdma_set_their_variables",
    ),
    "roles[].ports": honour(f"{_ALLOCATIONS}::test_allocated_ports_are_unique_across_replicas_and_jobs"),
    "framework_options": approximate(
        _(
            "In a network of their own, workers of PyTorch reach each other by name and have custom ports. "
            "Ray uses its runtime environment, object store size and retries of the submitter. The other "
            "settings are kept for export."
        ),
        f"{_NAMES}::test_replicas_find_each_other_by_name_and_by_every_variable",
        members=ray.OPTIONS | {"createSvcForAllWorkers", "customPortList", "customPortNumPerWorker"},
    ),
    "roles[].completion.min_failed": honour(
        f"{_ENDINGS}::test_tolerated_failures_are_reported_with_job_success"
    ),
    "roles[].completion.min_succeeded": honour(
        f"{_ENDINGS}::test_job_succeeds_after_enough_replica_successes"
    ),
    "roles[].env": honour(f"{_ENVIRONMENT}::test_environment_prefers_job_file_except_for_gpus"),
    "roles[].nodes.only": honour(f"{_ALLOCATIONS}::test_job_for_other_nodes_is_refused"),
    "roles[].nodes.never": honour(f"{_ALLOCATIONS}::test_job_for_other_nodes_is_refused"),
    "roles[].nodes.labels": keep(_("Nodes on this cluster have no labels.")),
    "roles[].init_containers": honour(f"{_CONTAINERS}::{_ORDER}", _BESIDE),
    "roles[].sidecars": honour(f"{_CONTAINERS}::{_ORDER}", _BESIDE),
    "roles[].shared_paths": honour(f"{_CONTAINERS}::{_ORDER}"),
    "env": honour(f"{_ENVIRONMENT}::test_environment_inside_job_has_its_values_and_none_of_console"),
    "secret_env": honour(f"{_ENVIRONMENT}::test_secrets_are_in_no_argument_list_and_gone_after_end"),
    "registry_auth": honour(f"{_IMAGES}::test_unavailable_image_fails_replica_and_runs_nothing"),
    "registry_auth.file_uri": honour(f"{_IMAGES}::test_registry_login_from_file_reaches_engine_only"),
    "mounts[].purpose": honour(f"{_MOUNTS}::test_openpai_directories_are_passed_as_their_paths"),
    "mounts[].id": honour(f"{_MOUNTS}::test_dataset_mount_resolves_to_folder_named_in_settings"),
    "mounts[].uri": honour(
        f"{_MOUNTS}::test_remote_place_maps_to_configured_local_folder",
        _("The cluster settings define the available locations."),
    ),
    "mounts[].path": honour(f"{_MOUNTS}::test_mounted_folder_is_at_requested_path_and_writable_if_allowed"),
    "mounts[].read_only": honour(f"{_MOUNTS}::test_read_only_mount_of_writable_folder_stays_read_only"),
    "mounts[].options": approximate(
        OPTIONS_OF_MEMORY,
        f"{_MOUNTS}::test_memory_mount_has_requested_size_and_empty_mount_is_on_disk",
        MOUNT_OPTIONS,
        MOUNT_OPTION_REASONS,
    ),
    "code.id": honour(f"{_CODE}::test_registered_code_is_found_by_id_and_overridden_by_job_file"),
    "code": honour(f"{_CODE}::test_local_repository_is_fetched_at_requested_ref"),
    "code.uri": honour(
        f"{_SOURCES}::test_code_archive_and_hdfs_directories_are_brought_and_output_is_stored",
        _("Git repositories, archives, object stores and HDFS that the cluster settings allow."),
    ),
    "code.submodules": honour(
        f"{_SOURCES}::test_submodules_are_fetched_from_the_host_of_the_repository_alone", OWN_HOST
    ),
    "code.path": honour(f"{_CODE}::test_code_without_path_is_placed_under_repository_name"),
    "requirements.packages": honour(f"{_PACKAGES}::test_pip_packages_and_their_commands_are_found"),
    "requirements.directory": honour(
        f"{_PACKAGES}::test_library_file_decides_which_program_installs", LIBRARY_FILES
    ),
    "software": honour(f"{_SOFTWARE}::test_software_modules_load_where_machine_has_them"),
    "software.conda": honour(f"{_SOFTWARE}::test_software_environment_is_active_when_command_starts"),
    "software.venv": honour(f"{_SOFTWARE}::test_software_environment_is_active_when_command_starts"),
    "time_limit_s": honour(f"{_ENDINGS}::test_time_limit_ends_job_after_warning_signal"),
    "end_signal": honour(f"{_ENDINGS}::test_time_limit_ends_job_after_warning_signal"),
    "keep_failed_s": honour(f"{_ENDINGS}::test_failed_replica_folder_is_reported_when_retained"),
    "cpu_affinity": honour(f"{_ALLOCATIONS}::test_replicas_with_affinity_are_pinned_to_cores_of_their_own"),
    "instance_role": honour(
        f"{_ROLES}::test_job_of_aws_role_reads_credentials_with_the_real_sdk",
        _(
            "The job's network, or a server beside each replica, gives the credentials. Refused for "
            "containers without a network of their own."
        ),
    ),
    "tensorboard": honour(
        f"{_LOCAL}/test_tensorboard.py::test_tensorboard_shows_what_a_job_logs_and_ends_with_it",
        _("Runs beside the first replica, if TensorBoard is installed in the job or with the console."),
    ),
}
