"""Support of each field of a job on a Slurm cluster (`jobs.backends.support`)."""

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
    leave_to_console,
)

_SLURM: Final = "jobs/backends/slurm/test_jobs.py"
_STAGING: Final = "jobs/backends/slurm/test_staging.py"
_FORGIVEN: Final = "test_a_chief_that_succeeds_ends_its_servers_and_failures_may_be_forgiven"
_NODES: Final = "test_one_of_several_nodes_is_enough_and_each_role_keeps_away_from_its_own"
_LIMIT: Final = "test_the_longest_running_time_ends_the_job_with_a_warning_before"

SUPPORT: Final[Mapping[str, Support]] = {
    "name": honour(
        f"{_SLURM}::test_variables_and_secrets_arrive_whatever_is_in_them",
        _("Available inside the job; the cluster's queue shows a key instead."),
    ),
    "framework": honour(
        f"{_SLURM}::test_three_roles_know_each_other_and_their_gpus",
        _("Each framework finds its peers through its own environment variables."),
    ),
    "roles[].name": honour(f"{_SLURM}::test_three_roles_know_each_other_and_their_gpus"),
    "roles[].replicas": honour(f"{_SLURM}::test_three_roles_know_each_other_and_their_gpus"),
    "roles[].command": honour(f"{CONTRACT}::test_a_job_runs_and_tells_its_end"),
    "roles[].image": approximate(
        _(
            "Run by Pyxis, Apptainer or Slurm itself, depending on the cluster settings; rejected "
            "if none is configured."
        ),
        f"{_SLURM}::test_an_image_is_refused_unless_an_admin_lets_it_run_without",
    ),
    "roles[].resources.cpu_milli": approximate(
        _("Rounded up to whole CPUs."), f"{_SLURM}::test_what_a_replica_was_given_is_what_it_asked_for"
    ),
    "roles[].resources.memory_mib": honour(f"{_SLURM}::test_what_a_replica_was_given_is_what_it_asked_for"),
    "roles[].resources.shm_mib": keep(_("The job uses the shared memory of its node.")),
    "roles[].resources.disk_mib": keep(DISK_UNLIMITED),
    "roles[].resources.gpus": honour(f"{_SLURM}::test_what_a_replica_was_given_is_what_it_asked_for"),
    "roles[].resources.gpu_type": honour(f"{_SLURM}::test_what_a_replica_was_given_is_what_it_asked_for"),
    "roles[].resources.rdma": keep(_("The cluster decides which network connects the nodes.")),
    "roles[].ports": honour(f"{_SLURM}::test_a_port_that_was_asked_for_is_told_and_seen"),
    "roles[].completion.min_failed": honour(f"{_SLURM}::{_FORGIVEN}"),
    "roles[].completion.min_succeeded": honour(f"{_SLURM}::{_FORGIVEN}"),
    "roles[].env": honour(f"{_SLURM}::test_variables_and_secrets_arrive_whatever_is_in_them"),
    "roles[].nodes.only": honour(f"{_SLURM}::{_NODES}"),
    "roles[].nodes.never": honour(f"{_SLURM}::{_NODES}"),
    "roles[].nodes.labels": approximate(
        _("Labels with the value true are requested as node features; other labels are ignored."),
        f"{_SLURM}::test_nodes_have_the_features_that_were_asked_for",
    ),
    "env": honour(f"{_SLURM}::test_variables_and_secrets_arrive_whatever_is_in_them"),
    "secret_env": honour(f"{_SLURM}::test_variables_and_secrets_arrive_whatever_is_in_them"),
    "registry_auth": keep(_("Nodes log in to registries with their own credentials.")),
    "mounts[].purpose": honour(f"{_STAGING}::test_places_are_where_the_job_wants_them"),
    "mounts[].id": leave_to_console("jobs/assets/test_resolution.py", _("IDs registered in this console.")),
    "mounts[].uri": honour(
        f"{_STAGING}::test_places_are_where_the_job_wants_them", _("Folders that exist on the nodes.")
    ),
    "mounts[].path": honour(
        f"{_STAGING}::test_places_are_where_the_job_wants_them",
        _("Any path where the nodes allow user namespaces; otherwise only below the working folder."),
    ),
    "mounts[].read_only": honour(f"{_STAGING}::test_places_are_where_the_job_wants_them"),
    "mounts[].options": approximate(
        OPTIONS_OF_MEMORY, f"{_STAGING}::test_places_are_where_the_job_wants_them"
    ),
    "code.id": leave_to_console("jobs/assets/test_resolution.py", _("IDs registered in this console.")),
    "code": honour(f"{_STAGING}::test_code_of_a_repository_is_there_at_its_commit"),
    "requirements": honour(f"{_STAGING}::test_packages_are_installed_from_a_list_that_comes_with_the_code"),
    "software": honour(f"{_STAGING}::test_an_environment_is_active_when_the_command_starts"),
    "time_limit_s": honour(f"{_SLURM}::{_LIMIT}"),
    "end_signal": honour(f"{_SLURM}::{_LIMIT}"),
    "grace_s": honour(f"{CONTRACT}::test_what_ignores_the_signal_is_killed_when_its_time_is_up"),
    "keep_failed_s": approximate(
        _("Folders of all replicas are kept until the job's files are deleted."),
        f"{_SLURM}::test_a_failed_replicas_folder_stays",
    ),
    "cpu_affinity": keep(_("The cluster's own settings decide whether tasks are bound to cores.")),
    "reserve_after": keep(NOT_KEPT_HERE),
    "fault_tolerance": keep(NOBODY_WATCHES),
    "sanity_check": keep(NOT_HERE),
    "tensorboard": keep(OWN_TENSORBOARD),
    "network": keep(CLOUDS_OWN),
    "instance_role": keep(CLOUDS_OWN),
    "framework_options": keep(CLOUDS_OWN),
}
