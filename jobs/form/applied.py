"""What becomes of each field of a JobSpec on each backend, with the test that shows it.

The form says beside a field what the chosen backend does not do with it, and `make docs` makes a page of this
table.  A path stands for everything below it, unless that stands here itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Fate(StrEnum):
    """HONOURED: the job has it.  CONSOLE: this console sees to it, whatever the backend.

    APPROXIMATED: it has something near to it.  REFUSED: a job that asks for it is not taken.  KEPT: it stays
    in the file, for export, and nothing is done with it here.
    """

    HONOURED = "honoured"
    CONSOLE = "console"
    APPROXIMATED = "approximated"
    REFUSED = "refused"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class Applied:
    """What becomes of a field.

    `test` is the one that looks, below tests/; `why` the code of a sentence in `jobs.messages.applied` where
    there is something to say.
    """

    fate: Fate
    test: str = ""
    why: str = ""


def _here(test: str, why: str = "") -> Applied:
    return Applied(Fate.HONOURED, test, why)


def _console(test: str, why: str = "") -> Applied:
    return Applied(Fate.CONSOLE, test, why)


def _near(why: str, test: str = "") -> Applied:
    return Applied(Fate.APPROXIMATED, test, why)


def _kept(why: str) -> Applied:
    return Applied(Fate.KEPT, why=why)


_LOCAL: Final = "jobs/backends/local"
_ENDINGS: Final = f"{_LOCAL}/test_endings.py"
_ENVIRONMENT: Final = f"{_LOCAL}/test_environment.py"
_IMAGES: Final = f"{_LOCAL}/test_images.py"
_LIMITS: Final = f"{_LOCAL}/test_limits.py"
_MOUNTS: Final = f"{_LOCAL}/test_mounts.py"
_CODE: Final = f"{_LOCAL}/test_code.py"
_PACKAGES: Final = f"{_LOCAL}/test_packages.py"
_SOFTWARE: Final = f"{_LOCAL}/test_software.py"
_CAPACITY: Final = f"{_LOCAL}/test_capacity.py"
_CONTRACT: Final = "jobs/backends/test_contract.py"
_ADMITTING: Final = "jobs/scheduling/test_admitting.py"
_RECONCILE: Final = "jobs/scheduling/test_reconcile.py"

_SLURM: Final = "jobs/backends/slurm/test_jobs.py"
_STAGING: Final = "jobs/backends/slurm/test_staging.py"
_FORGIVEN: Final = "test_a_chief_that_succeeds_ends_its_servers_and_failures_may_be_forgiven"
_NODES: Final = "test_one_of_several_nodes_is_enough_and_each_role_keeps_away_from_its_own"
_LIMIT: Final = "test_the_longest_running_time_ends_the_job_with_a_warning_before"

_EVERYWHERE: Final[Mapping[str, Applied]] = {
    "description": _kept("for_people"),
    "tags": _console("jobs/scheduling/test_idle.py::test_whom_the_policy_spares_is_left_alone"),
    "workspace": _kept("place_chosen"),
    "quota": _console("jobs/api/test_submit.py::test_a_job_goes_where_it_is_sent", "quota_by_name"),
    "priority": _console(f"{_RECONCILE}::test_higher_priority_starts_first_then_the_older"),
    "retry": _console(f"{_RECONCILE}::test_a_failure_is_retried_as_often_as_the_job_says"),
    "hold": _console(f"{_ADMITTING}::test_a_job_may_be_submitted_held_or_for_later"),
    "after": _console("jobs/submission/test_afters.py::test_a_job_starts_after_the_one_that_it_names"),
    "after_never": _console(
        "jobs/submission/test_afters.py::test_what_can_not_come_true_stops_the_job_or_holds_it"
    ),
    "not_before": _console(f"{_ADMITTING}::test_a_job_may_be_submitted_held_or_for_later"),
    "idle": _console(
        "quotas/admission/test_admission.py::test_a_job_that_allows_it_borrows_what_others_leave_idle"
    ),
    "roles[].bid": _console("quotas/admission/test_admission.py::test_a_bid_has_to_reach_the_price"),
    "visibility": _console(
        "test_access_matrix.py::test_a_public_job_is_read_by_members_but_not_by_strangers"
    ),
    "roles[].resources.instance_type": _near("size_as_amounts", "jobs/dialects/test_dlc_reading.py"),
}
"""What the console does, or leaves undone, by itself."""

LOCAL: Final[Mapping[str, Applied]] = {
    "name": _here(f"{_ENVIRONMENT}::test_openpais_words_about_the_job_and_all_its_tasks"),
    "framework": _here(f"{_ENVIRONMENT}::test_dlcs_and_aihcs_words", "framework_by_variables"),
    "roles[].name": _here(f"{_CAPACITY}::test_a_role_of_any_name_runs"),
    "roles[].replicas": _here(f"{_ENVIRONMENT}::test_openpais_words_about_the_job_and_all_its_tasks"),
    "roles[].command": _here(f"{_CONTRACT}::test_a_job_runs_and_tells_its_end"),
    "roles[].image": _here(
        f"{_IMAGES}::test_a_command_runs_in_its_image_with_the_jobs_environment", "image_by_engine"
    ),
    "roles[].resources.cpu_milli": _here(
        f"{_LIMITS}::test_a_replica_gets_the_cpu_time_it_asked_for_and_no_more", "cpu_by_groups"
    ),
    "roles[].resources.memory_mib": _here(
        f"{_LIMITS}::test_a_replica_whose_children_take_more_than_it_was_given_ends_whole"
    ),
    "roles[].resources.shm_mib": _here(f"{_LIMITS}::test_shared_memory_is_as_large_as_was_asked"),
    "roles[].resources.disk_mib": _kept("disk_unlimited"),
    "roles[].resources.gpus": _here(f"{_CAPACITY}::test_gpus_are_given_to_one_at_a_time_and_come_back"),
    "roles[].resources.gpu_type": _here(f"{_CAPACITY}::test_a_part_of_the_name_is_enough"),
    "roles[].resources.rdma": _kept("one_machine"),
    "roles[].ports": _here(f"{_CAPACITY}::test_ports_are_free_different_and_remembered"),
    "roles[].completion.min_failed": _here(
        f"{_ENDINGS}::test_failures_that_may_not_fail_the_job_are_told_with_its_success"
    ),
    "roles[].completion.min_succeeded": _here(f"{_ENDINGS}::test_enough_successes_end_the_job_well"),
    "roles[].env": _here(f"{_ENVIRONMENT}::test_the_job_file_wins_except_over_gpus"),
    "roles[].nodes.only": _here(f"{_CAPACITY}::test_a_job_for_other_nodes_is_refused"),
    "roles[].nodes.never": _here(f"{_CAPACITY}::test_a_job_for_other_nodes_is_refused"),
    "roles[].nodes.labels": _kept("no_labels"),
    "env": _here(f"{_ENVIRONMENT}::test_from_inside"),
    "secret_env": _here(f"{_ENVIRONMENT}::test_secrets_are_in_no_argument_list_and_gone_after_the_end"),
    "registry_auth": _here(
        f"{_IMAGES}::test_an_image_that_cannot_be_had_fails_the_replica_and_nothing_runs_instead"
    ),
    "registry_auth.file_uri": _here(
        f"{_IMAGES}::test_a_login_in_a_file_reaches_the_engine_and_no_place_else"
    ),
    "mounts[].purpose": _here(
        f"{_MOUNTS}::test_openpais_directories_are_told_by_the_paths_at_which_they_are"
    ),
    "mounts[].id": _here(f"{_MOUNTS}::test_a_dataset_is_a_folder_that_the_settings_name"),
    "mounts[].uri": _here(
        f"{_MOUNTS}::test_a_place_of_another_system_may_be_a_folder_here", "place_by_settings"
    ),
    "mounts[].path": _here(
        f"{_MOUNTS}::test_a_folder_is_where_the_job_file_says_and_can_be_written_to_where_that_is_allowed"
    ),
    "mounts[].read_only": _here(f"{_MOUNTS}::test_read_only_is_kept_though_the_folder_could_be_written_to"),
    "mounts[].options": _near(
        "options_of_memory",
        f"{_MOUNTS}::test_memory_is_as_large_as_it_is_asked_for_and_an_empty_folder_is_on_the_disk",
    ),
    "code.id": _here(f"{_CODE}::test_registered_code_is_known_by_its_id_and_the_job_file_may_say_otherwise"),
    "code": _here(f"{_CODE}::test_a_repository_of_this_machine_is_fetched_at_what_was_asked_for"),
    "code.path": _here(f"{_CODE}::test_code_without_a_path_lies_in_the_working_folder_by_its_own_name"),
    "requirements.packages": _here(f"{_PACKAGES}::test_packages_and_their_commands_are_found"),
    "requirements.directory": _here(f"{_PACKAGES}::test_a_list_of_packages_may_come_with_the_code"),
    "software": _here(f"{_SOFTWARE}::test_modules_are_loaded_where_the_machine_has_them"),
    "software.conda": _here(f"{_SOFTWARE}::test_an_environment_is_active_when_the_command_starts"),
    "software.venv": _here(f"{_SOFTWARE}::test_an_environment_is_active_when_the_command_starts"),
    "time_limit_s": _here(f"{_ENDINGS}::test_the_longest_running_time_ends_the_job_with_a_warning_before"),
    "end_signal": _here(f"{_ENDINGS}::test_the_longest_running_time_ends_the_job_with_a_warning_before"),
    "grace_s": _here(f"{_CONTRACT}::test_what_ignores_the_signal_is_killed_when_its_time_is_up"),
    "keep_failed_s": _here(f"{_ENDINGS}::test_the_folder_of_a_failed_replica_is_told_when_it_is_to_be_kept"),
    "cpu_affinity": _kept("not_here"),
    "reserve_after": _kept("not_kept_here"),
    "fault_tolerance": _kept("nobody_watches"),
    "sanity_check": _kept("not_here"),
    "tensorboard": _kept("own_tensorboard"),
    "network": _kept("clouds_own"),
    "instance_role": _kept("clouds_own"),
    "framework_options": _kept("clouds_own"),
}

SLURM: Final[Mapping[str, Applied]] = {
    "name": _here(f"{_SLURM}::test_variables_and_secrets_arrive_whatever_is_in_them", "name_inside"),
    "framework": _here(f"{_SLURM}::test_three_roles_know_each_other_and_their_gpus", "framework_variables"),
    "roles[].name": _here(f"{_SLURM}::test_three_roles_know_each_other_and_their_gpus"),
    "roles[].replicas": _here(f"{_SLURM}::test_three_roles_know_each_other_and_their_gpus"),
    "roles[].command": _here(f"{_CONTRACT}::test_a_job_runs_and_tells_its_end"),
    "roles[].image": _near(
        "image_by_cluster", f"{_SLURM}::test_an_image_is_refused_unless_an_admin_lets_it_run_without"
    ),
    "roles[].resources.cpu_milli": _near(
        "whole_cpus", f"{_SLURM}::test_what_a_replica_was_given_is_what_it_asked_for"
    ),
    "roles[].resources.memory_mib": _here(f"{_SLURM}::test_what_a_replica_was_given_is_what_it_asked_for"),
    "roles[].resources.shm_mib": _kept("shm_of_node"),
    "roles[].resources.disk_mib": _kept("disk_unlimited"),
    "roles[].resources.gpus": _here(f"{_SLURM}::test_what_a_replica_was_given_is_what_it_asked_for"),
    "roles[].resources.gpu_type": _here(f"{_SLURM}::test_what_a_replica_was_given_is_what_it_asked_for"),
    "roles[].resources.rdma": _kept("network_of_nodes"),
    "roles[].ports": _here(f"{_SLURM}::test_a_port_that_was_asked_for_is_told_and_seen"),
    "roles[].completion.min_failed": _here(f"{_SLURM}::{_FORGIVEN}"),
    "roles[].completion.min_succeeded": _here(f"{_SLURM}::{_FORGIVEN}"),
    "roles[].env": _here(f"{_SLURM}::test_variables_and_secrets_arrive_whatever_is_in_them"),
    "roles[].nodes.only": _here(f"{_SLURM}::{_NODES}"),
    "roles[].nodes.never": _here(f"{_SLURM}::{_NODES}"),
    "roles[].nodes.labels": _near(
        "labels_as_features", f"{_SLURM}::test_nodes_have_the_features_that_were_asked_for"
    ),
    "env": _here(f"{_SLURM}::test_variables_and_secrets_arrive_whatever_is_in_them"),
    "secret_env": _here(f"{_SLURM}::test_variables_and_secrets_arrive_whatever_is_in_them"),
    "registry_auth": _kept("login_of_nodes"),
    "mounts[].purpose": _here(f"{_STAGING}::test_places_are_where_the_job_wants_them"),
    "mounts[].id": _console("jobs/assets/test_resolving.py", "registered_ids"),
    "mounts[].uri": _here(f"{_STAGING}::test_places_are_where_the_job_wants_them", "place_of_nodes"),
    "mounts[].path": _here(f"{_STAGING}::test_places_are_where_the_job_wants_them", "path_by_view"),
    "mounts[].read_only": _here(f"{_STAGING}::test_places_are_where_the_job_wants_them"),
    "mounts[].options": _near("options_of_memory", f"{_STAGING}::test_places_are_where_the_job_wants_them"),
    "code.id": _console("jobs/assets/test_resolving.py", "registered_ids"),
    "code": _here(f"{_STAGING}::test_code_of_a_repository_is_there_at_its_commit"),
    "requirements": _here(f"{_STAGING}::test_packages_are_installed_from_a_list_that_comes_with_the_code"),
    "software": _here(f"{_STAGING}::test_an_environment_is_active_when_the_command_starts"),
    "time_limit_s": _here(f"{_SLURM}::{_LIMIT}"),
    "end_signal": _here(f"{_SLURM}::{_LIMIT}"),
    "grace_s": _here(f"{_CONTRACT}::test_what_ignores_the_signal_is_killed_when_its_time_is_up"),
    "keep_failed_s": _near("folders_stay", f"{_SLURM}::test_a_failed_replicas_folder_stays"),
    "cpu_affinity": _kept("binding_of_cluster"),
    "reserve_after": _kept("not_kept_here"),
    "fault_tolerance": _kept("nobody_watches"),
    "sanity_check": _kept("not_here"),
    "tensorboard": _kept("own_tensorboard"),
    "network": _kept("clouds_own"),
    "instance_role": _kept("clouds_own"),
    "framework_options": _kept("clouds_own"),
}

BACKENDS: Final[Mapping[str, Mapping[str, Applied]]] = MappingProxyType(
    {"local": {**_EVERYWHERE, **LOCAL}, "slurm": {**_EVERYWHERE, **SLURM}}
)


def applied(backend: str, path: str) -> Applied | None:
    """What becomes of the field at a path, `roles[].nodes.only`; None where nobody has said."""
    table = BACKENDS.get(backend, _EVERYWHERE)
    names = path.split(".")
    for count in range(len(names), 0, -1):
        around = ".".join(names[:count])
        found = table.get(around) or table.get(around.removesuffix("[]"))
        if found is not None:
            return found
    return None
