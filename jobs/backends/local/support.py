"""Support of each field of a job on this machine (`jobs.backends.support`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.backends.settings import mark as _
from jobs.backends.support import (
    CLOUDS_OWN,
    CONTRACT,
    DISK_UNLIMITED,
    NOBODY_WATCHES,
    NOT_HERE,
    NOT_KEPT_HERE,
    OPTIONS_OF_MEMORY,
    OWN_TENSORBOARD,
    Support,
    approximate,
    honour,
    keep,
)

_LOCAL: Final = "jobs/backends/local"
_ENDINGS: Final = f"{_LOCAL}/test_endings.py"
_ENVIRONMENT: Final = "jobs/node/wrapper/test_environment.py"
_IMAGES: Final = f"{_LOCAL}/test_images.py"
_LIMITS: Final = "jobs/node/wrapper/test_cgroups.py"
_MOUNTS: Final = f"{_LOCAL}/test_mounts.py"
_CODE: Final = f"{_LOCAL}/test_code.py"
_PACKAGES: Final = "jobs/node/staging/test_pip.py"
_SOFTWARE: Final = "jobs/backends/staging/test_software.py"
_ALLOCATIONS: Final = f"{_LOCAL}/test_allocations.py"

SUPPORT: Final[Mapping[str, Support]] = {
    "name": honour(f"{_ENVIRONMENT}::test_openpais_words_about_the_job_and_all_its_tasks"),
    "framework": honour(
        f"{_ENVIRONMENT}::test_dlcs_and_aihcs_words",
        _("Each framework finds its peers through its own environment variables; a Slurm job has one node."),
    ),
    "roles[].name": honour(f"{_ALLOCATIONS}::test_a_role_of_any_name_runs"),
    "roles[].replicas": honour(f"{_ENVIRONMENT}::test_openpais_words_about_the_job_and_all_its_tasks"),
    "roles[].command": honour(f"{CONTRACT}::test_a_job_runs_and_tells_its_end"),
    "roles[].image": honour(
        f"{_IMAGES}::test_a_command_runs_in_its_image_with_the_jobs_environment",
        _("Used where Podman or Docker is installed; otherwise the cluster settings decide."),
    ),
    "roles[].resources.cpu_milli": honour(
        f"{_LIMITS}::test_a_replica_gets_the_cpu_time_it_asked_for_and_no_more",
        _("Enforced where the machine lets the console limit CPU time; otherwise only counted."),
    ),
    "roles[].resources.memory_mib": honour(
        f"{_LIMITS}::test_a_replica_whose_children_take_more_than_it_was_given_ends_whole"
    ),
    "roles[].resources.shm_mib": honour(f"{_LIMITS}::test_shared_memory_is_as_large_as_was_asked"),
    "roles[].resources.disk_mib": keep(DISK_UNLIMITED),
    "roles[].resources.gpus": honour(f"{_ALLOCATIONS}::test_gpus_are_given_to_one_at_a_time_and_come_back"),
    "roles[].resources.gpu_type": honour(f"{_ALLOCATIONS}::test_a_part_of_the_name_is_enough"),
    "roles[].resources.rdma": keep(_("All replicas run on one machine, so no such network is needed.")),
    "roles[].ports": honour(f"{_ALLOCATIONS}::test_ports_are_free_different_and_remembered"),
    "roles[].completion.min_failed": honour(
        f"{_ENDINGS}::test_failures_that_may_not_fail_the_job_are_told_with_its_success"
    ),
    "roles[].completion.min_succeeded": honour(f"{_ENDINGS}::test_enough_successes_end_the_job_well"),
    "roles[].env": honour(f"{_ENVIRONMENT}::test_the_job_file_wins_except_over_gpus"),
    "roles[].nodes.only": honour(f"{_ALLOCATIONS}::test_a_job_for_other_nodes_is_refused"),
    "roles[].nodes.never": honour(f"{_ALLOCATIONS}::test_a_job_for_other_nodes_is_refused"),
    "roles[].nodes.labels": keep(_("Nodes on this cluster have no labels.")),
    "env": honour(f"{_ENVIRONMENT}::test_from_inside"),
    "secret_env": honour(f"{_ENVIRONMENT}::test_secrets_are_in_no_argument_list_and_gone_after_the_end"),
    "registry_auth": honour(
        f"{_IMAGES}::test_an_image_that_cannot_be_had_fails_the_replica_and_nothing_runs_instead"
    ),
    "registry_auth.file_uri": honour(
        f"{_IMAGES}::test_a_login_in_a_file_reaches_the_engine_and_no_place_else"
    ),
    "mounts[].purpose": honour(
        f"{_MOUNTS}::test_openpais_directories_are_told_by_the_paths_at_which_they_are"
    ),
    "mounts[].id": honour(f"{_MOUNTS}::test_a_dataset_is_a_folder_that_the_settings_name"),
    "mounts[].uri": honour(
        f"{_MOUNTS}::test_a_place_of_another_system_may_be_a_folder_here",
        _("The cluster settings define the available locations."),
    ),
    "mounts[].path": honour(
        f"{_MOUNTS}::test_a_folder_is_where_the_job_file_says_and_can_be_written_to_where_that_is_allowed"
    ),
    "mounts[].read_only": honour(f"{_MOUNTS}::test_read_only_is_kept_though_the_folder_could_be_written_to"),
    "mounts[].options": approximate(
        OPTIONS_OF_MEMORY,
        f"{_MOUNTS}::test_memory_is_as_large_as_it_is_asked_for_and_an_empty_folder_is_on_the_disk",
    ),
    "code.id": honour(f"{_CODE}::test_registered_code_is_known_by_its_id_and_the_job_file_may_say_otherwise"),
    "code": honour(f"{_CODE}::test_a_repository_of_this_machine_is_fetched_at_what_was_asked_for"),
    "code.path": honour(f"{_CODE}::test_code_without_a_path_lies_in_the_working_folder_by_its_own_name"),
    "requirements.packages": honour(f"{_PACKAGES}::test_packages_and_their_commands_are_found"),
    "requirements.directory": honour(f"{_PACKAGES}::test_a_list_of_packages_may_come_with_the_code"),
    "software": honour(f"{_SOFTWARE}::test_modules_are_loaded_where_the_machine_has_them"),
    "software.conda": honour(f"{_SOFTWARE}::test_an_environment_is_active_when_the_command_starts"),
    "software.venv": honour(f"{_SOFTWARE}::test_an_environment_is_active_when_the_command_starts"),
    "time_limit_s": honour(f"{_ENDINGS}::test_the_longest_running_time_ends_the_job_with_a_warning_before"),
    "end_signal": honour(f"{_ENDINGS}::test_the_longest_running_time_ends_the_job_with_a_warning_before"),
    "grace_s": honour(f"{CONTRACT}::test_what_ignores_the_signal_is_killed_when_its_time_is_up"),
    "keep_failed_s": honour(f"{_ENDINGS}::test_the_folder_of_a_failed_replica_is_told_when_it_is_to_be_kept"),
    "cpu_affinity": keep(NOT_HERE),
    "reserve_after": keep(NOT_KEPT_HERE),
    "fault_tolerance": keep(NOBODY_WATCHES),
    "sanity_check": keep(NOT_HERE),
    "tensorboard": keep(OWN_TENSORBOARD),
    "network": keep(CLOUDS_OWN),
    "instance_role": keep(CLOUDS_OWN),
    "framework_options": keep(CLOUDS_OWN),
}
