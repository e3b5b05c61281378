"""What the vendors' pages say, row by row: each is tried on this machine and on Slurm.

A row is observed by a command inside a job (few jobs carry many rows), by the check of a job file, or by a
test elsewhere, which is named: a field that acts has no note that it has no effect, one that can't act has a
note, and a job that lacks something is refused with what it lacks.
"""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final

from jobs import submission
from jobs.dialects.document import Document
from jobs.messages.findings import Finding
from jobs.submission.checks import findings
from quotas.models import User


class Outcome(StrEnum):
    """What becomes of a row."""

    YES = "yes"
    NOTE = "note"
    REFUSED = "refused at check time"
    NO = "no"


@dataclass(frozen=True, slots=True)
class Observed:
    """A row that a shell test observes inside the first replica of the job `job`.

    `on_slurm` is the outcome there, where it is another one.  What is not observed has to be noted by its
    name.
    """

    page: str
    name: str
    job: str
    test: str
    outcome: Outcome = Outcome.YES
    on_slurm: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """A row that the check of a job file tells; `word` is part of the note or problem that is looked for.

    With the outcome YES no note may say that `word` has no effect.  `on_slurm` is the outcome there, where it
    is another one.
    """

    page: str
    name: str
    file: Mapping[str, Any]
    word: str
    outcome: Outcome = Outcome.YES
    quota: str = "default"
    on_slurm: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A row that another test observes: `test` is its file below `tests` and its name.

    `on_slurm` is the test on Slurm; "" where `test` does not depend on the cluster, or runs on each; None
    where no test observes it there, and the row of its check says what Slurm does.
    """

    page: str
    name: str
    test: str
    outcome: Outcome = Outcome.YES
    on_slurm: str | None = ""


Row = Observed | Checked | Elsewhere

LOCAL: Final = "local"
SLURM: Final = "slurm"
CLUSTERS: Final = (LOCAL, SLURM)

WORKER: Final = {
    "Type": "Worker",
    "PodCount": 1,
    "Image": "i",
    "ResourceConfig": {"CPU": "1", "Memory": "512Mi"},
}
DLC: Final[dict[str, Any]] = {
    "DisplayName": "dlc",
    "JobType": "PyTorchJob",
    "UserCommand": "true",
    "JobSpecs": [WORKER],
    "JobMaxRunningTimeMinutes": 60,
}
TASK: Final = {
    "name": "main",
    "taskNumber": 1,
    "cpuNumber": 1,
    "memoryMB": 512,
    "gpuNumber": 0,
    "command": "true",
}
SCM: Final[dict[str, Any]] = {"jobName": "scm", "image": "i", "taskRoles": [TASK]}
AIHC: Final[dict[str, Any]] = {
    "name": "aihc",
    "queue": "default",
    "jobType": "PyTorchJob",
    "command": "true",
    "jobSpec": {"image": "i", "replicas": 1, "resources": [{"name": "cpu", "quantity": 1}]},
}


def dlc(role: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return a DLC job with other fields."""
    return {**DLC, "JobSpecs": [{**WORKER, **(role or {})}], **more}


def scm(role: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return an OpenPAI job with other fields."""
    return {**SCM, "taskRoles": [{**TASK, **(role or {})}], **more}


def settings(**values: object) -> dict[str, Any]:
    """Return a DLC job with advanced settings."""
    return dlc(Settings={"AdvancedSettings": values})


def spot(**limit: float) -> dict[str, Any]:
    """Return a preemptible DLC job."""
    return dlc({"SpotSpec": {"SpotStrategy": "SpotWithPriceLimit", **limit}})


JOBS: Final[Mapping[str, dict[str, Any]]] = {
    "pytorch": dlc(
        {"PodCount": 2, "ResourceConfig": {"CPU": "1", "Memory": "512Mi", "SharedMemory": "128Mi"}},
        Envs={"FOO": "bar"},
        DataSources=[{"DataSourceId": "d-1", "MountPath": "/root/data/nas1"}],
        CodeSource={"CodeSourceId": "code-1", "Branch": "main", "MountPath": "/root/code"},
        ThirdpartyLibs=["tiny==1.0"],
        ThirdpartyLibDir="/root/code/",
        Priority=7,
        Settings={"Tags": {"team": "a"}},
    ),
    "tensorflow": dlc(
        JobType="TFJob",
        SuccessPolicy="ChiefWorker",
        JobSpecs=[WORKER | {"Type": "Chief"}, WORKER, WORKER | {"Type": "PS"}],
    ),
    "scm": scm(
        {"name": "main", "portList": [{"label": "web", "beginAt": 0, "portNumber": 2}], "shmMB": 128},
        jobEnvs={"LR": "0.1", "EPOCHS": 3},
        retryCount=0,
    ),
    "aihc": {
        **AIHC,
        "tensorboardConfig": {"enable": True, "logPath": "/tmp/logs"},
        "jobSpec": {**AIHC["jobSpec"], "envs": [{"name": "FOO", "value": "bar"}]},
    },
}
"""The jobs that run; their commands are made of the rows' tests."""

_NAMES: Final = (
    *("PAI_WORK_DIR", "PAI_JOB_NAME", "PAI_DEFAULT_FS_URI", "PAI_USER_NAME", "PAI_CURRENT_TASK_ROLE_NAME"),
    *("PAI_CURRENT_TASK_ROLE_TASK_COUNT", "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", "PAI_TASK_ROLE_LIST"),
    *("PAI_CURRENT_TASK_ROLE_CPU_COUNT", "PAI_CURRENT_TASK_ROLE_MEM_MB", "PAI_RESOURCE_main"),
)
"""Names of SCM's table that every job has."""

_NEW: Final = "jobs/web/test_new.py"
_PAGE: Final = "jobs/web/job/test_page.py"
_ACTIONS: Final = "jobs/web/job/test_actions.py"
_LOCAL: Final = "jobs/backends/local"
_CONTAINERS = (
    "jobs/backends/local/test_containers.py::test_init_containers_run_in_order_and_sidecar_ends_with_command"
)
_SLURM: Final = "jobs/backends/slurm"
_STAGING: Final = "jobs/backends/slurm/test_staging.py"
_VENDORS: Final = "jobs/api/vendors"
_CLIENTS: Final = "jobs/access/terminal_gateway/test_clients.py"
_SAMPLES: Final = "clients/test_seed_sample.py"

ROWS: Final[tuple[Row, ...]] = (
    # PAI-DLC's pages
    Observed("DLC", "image, where no engine is", "pytorch", "true"),
    Observed("DLC", "dataset, mounted read-only", "pytorch", "grep -q 1 /root/data/nas1/train"),
    Observed(
        "DLC", "injected variables", "pytorch", '[ "$WORLD_SIZE" = 2 ] && [ -n "$MASTER_ADDR$MASTER_PORT" ]'
    ),
    Observed("DLC", "RANK and NPROC_PER_NODE", "pytorch", '[ "$RANK" = 0 ] && [ "$NPROC_PER_NODE" = 1 ]'),
    Observed("DLC", "environment variables", "pytorch", '[ "$FOO" = bar ]'),
    Observed("DLC", "third-party libraries and folder", "pytorch", "tiny-says && other-says"),
    Observed("DLC", "code: source, branch, path", "pytorch", "grep -q two /root/code/file"),
    Observed("DLC", "shared memory", "pytorch", "df -m /dev/shm | grep -qw 128", on_slurm=Outcome.NOTE),
    Observed("DLC", "TF_CONFIG", "tensorflow", 'echo "$TF_CONFIG" | grep -q \'"chief"\''),
    Checked(
        "DLC", "at most 20 variables", dlc(Envs={f"V{n}": "1" for n in range(21)}), "at most 20", Outcome.NOTE
    ),
    Checked("DLC", "priority 1 to 9", dlc(Priority=10), "Priority", Outcome.REFUSED),
    Checked("DLC", "priority with a quota only", dlc(Priority=9), "Priorities", Outcome.NOTE, "public"),
    Checked("DLC", "Lingjun's frameworks", dlc(JobType="XGBoostJob"), "Lingjun", Outcome.NOTE, "lingjun"),
    Checked("DLC", "public: 2 GPUs, 8 cores", dlc({"PodCount": 9}), "at most 8", Outcome.REFUSED, "public"),
    Checked("DLC", "bids in steps of 0.1", spot(SpotDiscountLimit=0.45), "steps of 10", Outcome.NOTE, "spot"),
    Checked("DLC", "bids up to 0.9", spot(SpotDiscountLimit=0.95), "0.9", Outcome.REFUSED, "spot"),
    Checked("DLC", "ports in range", settings(customPortList="70000"), "list of ports", Outcome.NOTE),
    Checked(
        "DLC", "number of ports", settings(customPortNumPerWorker="70000"), "number of ports", Outcome.NOTE
    ),
    Checked(
        "DLC",
        "unknown size",
        dlc({"EcsSpec": "ecs.nothing", "ResourceConfig": {}}),
        "catalog",
        Outcome.REFUSED,
    ),
    Checked(
        "DLC",
        "OSS that nobody mapped",
        dlc(DataSources=[{"Uri": "oss://b/", "MountPath": "/d"}]),
        "oss",
        Outcome.REFUSED,
    ),
    Checked(
        "DLC",
        "dataset that nobody registered",
        dlc(DataSources=[{"DataSourceId": "d-none"}]),
        "d-none",
        Outcome.REFUSED,
    ),
    Checked(
        "DLC",
        "code that nobody registered",
        dlc(CodeSource={"CodeSourceId": "code-none"}),
        "code-none",
        Outcome.REFUSED,
    ),
    Checked(
        "DLC",
        "SlurmJob of two nodes on local",
        dlc({"PodCount": 2}, JobType="SlurmJob"),
        "nodes",
        Outcome.REFUSED,
        on_slurm=Outcome.YES,
    ),
    Checked(
        "DLC",
        "no time limit",
        {n: v for n, v in DLC.items() if "Minutes" not in n},
        "No time limit",
        Outcome.NOTE,
    ),
    Checked("DLC", "CPU affinity", dlc(Settings={"EnableCPUAffinity": True}), "CPU affinity: No"),
    Checked(
        "DLC",
        "retention",
        dlc(Settings={"JobReservedMinutes": 10, "JobReservedPolicy": "Always"}),
        "Retention: No",
    ),
    Checked(
        "DLC",
        "default role where the workspace has none",
        dlc(
            CredentialConfig={
                "EnableCredentialInject": True,
                "AliyunEnvRoleKey": "0",
                "CredentialConfigItems": [
                    {"Key": "0", "Type": "Role", "Roles": [{"RoleType": "Service", "RoleArn": ""}]}
                ],
            }
        ),
        "no default role",
        Outcome.REFUSED,
    ),
    Checked(
        "DLC",
        "RayRuntimeEnv",
        dlc({"Type": "Head"}, JobType="RayJob", Settings={"AdvancedSettings": {"RayRuntimeEnv": "{}"}}),
        "RayRuntimeEnv: No",
    ),
    Checked(
        "DLC",
        "fault tolerance",
        dlc(Settings={"EnableErrorMonitoringInAIMaster": True}),
        "Fault tolerance: No effect",
    ),
    Checked(
        "DLC",
        "VPC",
        dlc(UserVpc={"VpcId": "vpc-1", "SwitchId": "vsw-1", "SecurityGroupId": "sg"}),
        "Network",
        Outcome.NOTE,
    ),
    Checked(
        "DLC",
        "init containers",
        dlc({"ExtraPodSpec": {"InitContainers": [{"Name": "x", "Image": "i", "Command": ["true"]}]}}),
        "InitContainers",
    ),
    Elsewhere(
        "DLC",
        "init containers and sidecars, observed",
        _CONTAINERS,
        on_slurm=f"{_SLURM}/test_containers.py"
        "::test_init_containers_run_in_order_and_sidecar_ends_with_command_on_slurm",
    ),
    Checked("DLC", "Options", dlc(Options="a=b"), "Options", Outcome.NOTE),
    Checked("DLC", "image where no engine is", DLC, "image", Outcome.NOTE),
    Checked(
        "DLC", "ReleaseResourcePolicy", settings(ReleaseResourcePolicy="pod-exit"), "ReleaseRes", Outcome.NOTE
    ),
    *(
        Checked("DLC", name, settings(**{name: "true"}), name, Outcome.NOTE)
        for name in (
            "EnableNvidiaIBGDA",
            "EnableNvidiaGDRCopy",
            "EnablePaiNUMACoreBinding",
            "EnableResourcePreCheck",
        )
    ),
    Elsewhere(
        "DLC", "name and tags", "clients/test_dlc_sdk.py::test_sdk_runs_jobs_from_creation_to_deletion"
    ),
    Elsewhere(
        "DLC",
        "official images",
        f"{_VENDORS}/pai_workspace/test_images.py::test_labels_of_sample_find_an_official_image",
    ),
    Elsewhere(
        "DLC",
        "image address, by an engine",
        f"{_LOCAL}/test_images.py::test_image_command_runs_with_job_environment",
        on_slurm=f"{_SLURM}/test_container_runtimes.py::test_oci_role_runs_in_bundle_with_staged_files",
    ),
    Elsewhere(
        "DLC",
        "private images",
        f"{_LOCAL}/test_images.py::test_registry_login_from_file_reaches_engine_only",
        on_slurm=None,
    ),
    Elsewhere(
        "DLC",
        "OSS",
        f"{_LOCAL}/test_data.py::test_mapped_address_is_copied_with_keys_of_settings",
        on_slurm=f"{_STAGING}::test_mapped_bucket_is_copied_in_by_signed_addresses",
    ),
    Elsewhere(
        "DLC",
        "NAS, CPFS and BMCPFS",
        f"{_LOCAL}/test_mounts.py::test_mapped_storage_is_read_only_and_for_its_workspaces_where_settings_say_so",
        on_slurm=f"{_STAGING}::test_mapped_address_is_folder_of_nodes",
    ),
    Elsewhere(
        "DLC",
        "one environment of libraries for all replicas",
        "jobs/node/staging/test_pip.py::test_pip_packages_of_three_replicas_are_installed_once",
        on_slurm=f"{_STAGING}::test_packages_are_installed_once_for_all_jobs_of_the_person",
    ),
    Elsewhere(
        "DLC",
        "code: commit",
        f"{_LOCAL}/test_code.py::test_local_repository_is_fetched_at_requested_ref",
        on_slurm=f"{_STAGING}::test_repository_code_is_staged_at_requested_commit",
    ),
    Elsewhere(
        "DLC", "code that is uploaded", "jobs/client/test_run.py::test_run_exits_with_exit_code_of_job"
    ),
    Elsewhere(
        "DLC",
        "size with its price",
        "quotas/billing/test_ledger_days.py::test_amounts_unlike_any_spec_are_priced_by_their_share",
    ),
    Elsewhere(
        "DLC",
        "priority",
        "jobs/scheduling/test_reconcile.py::test_admission_starts_higher_priority_first_then_older",
    ),
    Elsewhere("DLC", "MPIJob", "frameworks/test_mpi.py::test_mpirun_spans_replicas_and_its_exit_is_jobs"),
    Elsewhere(
        "DLC",
        "RayJob",
        "frameworks/test_ray.py::test_ray_driver_spans_replicas_in_runtime_env_and_serves_dashboard",
    ),
    Elsewhere("DLC", "XGBoostJob", "frameworks/test_xgboost.py::test_xgboost_workers_train_one_model"),
    Elsewhere("DLC", "ElasticBatch", "frameworks/test_pytorch.py::test_elastic_job_goes_on_with_minimum"),
    Elsewhere("DLC", "torchrun", "frameworks/test_pytorch.py::test_torchrun_without_options_spans_replicas"),
    Elsewhere(
        "DLC",
        "sanity check",
        "jobs/backends/local/test_sanity_checks.py::test_replicas_check_their_nodes_before_the_command",
    ),
    Elsewhere(
        "DLC",
        "TFJob with its roles",
        "frameworks/test_tensorflow.py::test_tensorflow_chief_ends_job_and_evaluator_is_in_no_cluster",
    ),
    Elsewhere(
        "DLC",
        "bid above and below the price",
        "jobs/scheduling/test_admission.py::test_preemptible_job_outbid_by_price_returns_when_price_falls",
    ),
    Elsewhere(
        "DLC",
        "preemptible samples",
        f"{_SAMPLES}::test_samples_that_name_things_of_the_site_succeed_unchanged",
    ),
    Elsewhere(
        "DLC",
        "chosen nodes",
        f"{_LOCAL}/test_allocations.py::test_job_for_other_nodes_is_refused",
        on_slurm=f"{_SLURM}/test_jobs.py::test_roles_run_on_any_allowed_node_and_avoid_excluded_nodes",
    ),
    Elsewhere(
        "DLC",
        "idle resources",
        "jobs/scheduling/test_admission.py::test_borrower_preempted_gets_own_signal_and_queues_again",
    ),
    Elsewhere(
        "DLC",
        "CPU affinity, observed",
        f"{_LOCAL}/test_allocations.py::test_replicas_with_affinity_are_pinned_to_cores_of_their_own",
        on_slurm=None,
    ),
    Elsewhere(
        "DLC",
        "longest running time",
        f"{_LOCAL}/test_endings.py::test_time_limit_ends_job_after_warning_signal",
        on_slurm=f"{_SLURM}/test_jobs.py::test_time_limit_ends_job_after_warning_signal",
    ),
    Elsewhere(
        "DLC",
        "retention, observed",
        "jobs/scheduling/test_retention.py::test_retained_job_keeps_its_files_and_is_then_deleted",
    ),
    Elsewhere(
        "DLC",
        "fault tolerance, observed",
        "jobs/scheduling/test_fault_tolerance.py::test_failed_job_is_restarted_as_the_table_says",
    ),
    Elsewhere(
        "DLC",
        "default role",
        "clients/test_instance_roles.py::test_job_of_alibaba_role_reads_credentials_with_the_real_sdk",
    ),
    Elsewhere(
        "DLC",
        "custom role",
        "jobs/access/test_role_credentials.py::test_job_of_aws_role_reads_credentials_with_the_real_sdk",
    ),
    Elsewhere(
        "DLC",
        "createSvcForAllWorkers",
        f"{_LOCAL}/test_names.py::test_replicas_find_each_other_by_name_and_by_every_variable",
        on_slurm=None,
    ),
    Elsewhere(
        "DLC",
        "customPortList and number",
        f"{_LOCAL}/test_own_ports.py::test_custom_ports_are_those_that_dlc_options_request",
        on_slurm=None,
    ),
    Elsewhere(
        "DLC",
        "TensorBoard",
        "clients/test_dlc_services_sdk.py::test_sdk_creates_reads_stops_starts_and_lists_tensorboards",
    ),
    Elsewhere(
        "DLC",
        "log forwarding",
        "jobs/log_forwarding/test_forwarder.py::test_forwarder_sends_new_lines_with_their_job_and_nothing_twice",
    ),
    Elsewhere(
        "DLC",
        "alerts of a quota",
        "jobs/notifications/test_thresholds.py::test_quota_usage_is_reported_at_each_requested_share",
    ),
    Elsewhere("DLC", "program of the page", f"{_SAMPLES}::test_program_of_the_page_ends_succeeded"),
    Elsewhere(
        "DLC",
        "dlc submit --job_file",
        "clients/test_dlc_command.py::test_page_example_is_submitted_shown_and_stopped",
    ),
    Checked(
        "DLC",
        "ports of workers",
        settings(createSvcForAllWorkers="true", customPortNumPerWorker="2"),
        "customPortNumPerWorker: No effect",
        on_slurm=Outcome.NOTE,
    ),
    Checked("DLC", "role: none", dlc(CredentialConfig={"EnableCredentialInject": False}), "role"),
    Checked(
        "DLC",
        "mount options",
        dlc(DataSources=[{"DataSourceId": "d-1", "MountPath": "/d", "Options": '{"nconnect":"2"}'}]),
        "options",
        Outcome.NOTE,
    ),
    Checked("DLC", "size of the page", dlc({"EcsSpec": "ecs.g7.xlarge", "ResourceConfig": {}}), "ecs"),
    Checked("DLC", "unknown size beside amounts", dlc({"EcsSpec": "ecs.nothing"}), "is used", Outcome.NOTE),
    Checked("DLC", "OneFlow", dlc(JobType="OneFlowJob"), "OneFlow"),
    Checked(
        "DLC",
        "sanity check without GPUs",
        dlc(Settings={"EnableSanityCheck": True}),
        "GPU",
        Outcome.NOTE,
    ),
    Checked(
        "DLC",
        "arguments of fault tolerance",
        dlc(
            Settings={
                "EnableErrorMonitoringInAIMaster": True,
                "ErrorMonitoringArgs": "--job-execution-mode=Sync --no-such-argument",
            }
        ),
        "no-such-argument",
        Outcome.NOTE,
    ),
    Checked(
        "DLC",
        "ports by list or by number",
        settings(customPortList="10000", customPortNumPerWorker="2"),
        "customPort",
        Outcome.NOTE,
    ),
    Checked("DLC", "ports without 23456", settings(customPortList="23000-24000"), "23456", Outcome.NOTE),
    Checked(
        "DLC",
        "no number of ports on Lingjun",
        settings(customPortNumPerWorker="2"),
        "Lingjun",
        Outcome.NOTE,
        "lingjun",
    ),
    Checked(
        "DLC",
        "options of PyTorch for PyTorch only",
        dlc(JobType="TFJob", Settings={"AdvancedSettings": {"createSvcForAllWorkers": "true"}}),
        "createSvc",
        Outcome.NOTE,
    ),
    *(
        Checked(
            "DLC",
            name,
            dlc({"Type": "Head"}, JobType="RayJob", Settings={"AdvancedSettings": {name: value}}),
            name,
            outcome,
        )
        for name, value, outcome in (
            ("RayRedisAddress", "redis:6379", Outcome.NOTE),
            ("RayRedisUsername", "x", Outcome.NOTE),
            ("RayRedisPassword", "x", Outcome.NOTE),
            ("RaySubmitterBackoffLimit", "3", Outcome.YES),
            ("RayObjectStoreMemoryBytes", "1073741824", Outcome.YES),
        )
    ),
    Checked(
        "DLC",
        "preemptible on Lingjun needs a VPC",
        spot(SpotDiscountLimit=0.4),
        "needs a VPC",
        Outcome.NOTE,
        "lingjun-spot",
    ),
    Checked(
        "DLC",
        "vSwitch without ExtendedCIDRs",
        dlc(UserVpc={"VpcId": "vpc-1", "SwitchId": "vsw-1", "SecurityGroupId": "sg"}),
        "ExtendedCIDRs",
    ),
    Checked(
        "DLC",
        "list and folder of libraries together",
        dlc(ThirdpartyLibs=["idna"], ThirdpartyLibDir="/root/code"),
        "Third",
    ),
    Elsewhere(
        "DLC",
        "time limit of a new job: 30 hours",
        f"{_NEW}::test_new_job_form_starts_with_valid_file_under_free_name",
    ),
    Elsewhere(
        "DLC",
        "public datasets are read-only",
        "jobs/assets/test_resolution.py::test_dataset_for_all_is_mounted_read_only",
    ),
    Elsewhere(
        "DLC",
        "dataset: version",
        "jobs/assets/test_resolution.py::test_dataset_version_is_chosen_by_id_suffix_or_dialect_key",
    ),
    Elsewhere(
        "DLC",
        "fields follow type, source and quota",
        "jobs/web/new_job/test_form_rules.py::test_form_rules_follow_chosen_place",
    ),
    Elsewhere(
        "DLC",
        "every field of the pages is in the form",
        "jobs/form/test_form_fields.py::test_form_table_lists_every_page_field",
    ),
    Elsewhere(
        "DLC",
        "roles of each framework",
        "jobs/dialects/test_dlc_reading.py::test_job_types_are_read_with_their_roles",
    ),
    Elsewhere(
        "DLC",
        "nodes, CPU, GPUs and memory",
        f"{_LOCAL}/test_allocations.py::test_gpu_allocation_is_exclusive_and_returned_after_use",
        on_slurm=f"{_SLURM}/test_jobs.py::test_replica_receives_exactly_requested_resources",
    ),
    Elsewhere(
        "DLC",
        "priority does not count on public resources",
        "jobs/submission/checks/test_page_rules.py::test_priority_on_public_resources_does_not_count",
    ),
    Elsewhere("DLC", "job details", f"{_PAGE}::test_job_page_shows_every_tab_to_owner_and_managers"),
    Elsewhere("DLC", "logs", f"{_PAGE}::test_logs_tab_opens_log_of_first_failure"),
    Elsewhere("DLC", "events", f"{_PAGE}::test_events_tab_shows_sentences_newest_first"),
    Elsewhere("DLC", "clone", f"{_NEW}::test_job_clone_starts_from_the_file_under_the_next_name"),
    Elsewhere("DLC", "stop", f"{_ACTIONS}::test_stop_of_running_job_is_requested_and_shown"),
    Elsewhere("DLC", "delete", f"{_ACTIONS}::test_delete_removes_ended_job"),
    Elsewhere(
        "DLC",
        "billing",
        "quotas/billing/test_ledger_days.py::test_amounts_unlike_any_spec_are_priced_by_their_share",
    ),
    Elsewhere(
        "DLC",
        "notices",
        "jobs/notifications/test_outbox.py::test_outbox_job_end_records_kind_and_reason",
    ),
    Elsewhere(
        "DLC",
        "SDK's call, pasted",
        "jobs/dialects/test_pasted.py::test_sdk_program_is_read_and_its_unread_parts_are_reported",
    ),
    # The page of CreateJob
    Checked(
        "CreateJob",
        "UseSpotInstance",
        dlc({"UseSpotInstance": True}),
        "UseSpotInstance",
        Outcome.YES,
        "spot",
    ),
    Elsewhere(
        "CreateJob",
        "unset keys of any SDK",
        "jobs/dialects/test_dlc_reading.py::test_keys_left_unset_by_any_sdk_generation_have_no_effect",
    ),
    Checked(
        "CreateJob",
        "sidecars",
        dlc({"ExtraPodSpec": {"SideCarContainers": [{"Name": "x", "Image": "i", "Command": ["true"]}]}}),
        "SideCarContainers",
    ),
    Checked(
        "CreateJob",
        "shared volumes",
        dlc({"ExtraPodSpec": {"SharedVolumeMountPaths": ["/s"]}}),
        "SharedVolumeMountPaths",
    ),
    *(
        Checked("CreateJob", name, dlc(Settings={name: "x"}), name, Outcome.NOTE)
        for name in ("BusinessUserId", "Caller", "PipelineId")
    ),
    Checked(
        "CreateJob",
        "EnableTideResource",
        dlc(Settings={"EnableTideResource": True}),
        "EnableTideResource",
        Outcome.NOTE,
    ),
    Checked(
        "CreateJob",
        "ElasticSpec",
        dlc(ElasticSpec={"EnableElasticTraining": True}),
        "ElasticSpec",
        Outcome.NOTE,
    ),
    Checked(
        "CreateJob",
        "DebuggerConfigContent",
        dlc(DebuggerConfigContent="x"),
        "DebuggerConfigContent",
        Outcome.NOTE,
    ),
    Elsewhere(
        "CreateJob",
        "sample of the page",
        f"{_SAMPLES}::test_samples_that_name_things_of_the_site_succeed_unchanged",
    ),
    Elsewhere(
        "CreateJob",
        "request with its first lines",
        "jobs/dialects/test_pasted.py::test_vendor_samples_are_read_as_printed",
    ),
    # SCM's page
    Observed(
        "SCM",
        "variables of the table",
        "scm",
        " && ".join(f'[ "${{{name}+x}}" ]' for name in _NAMES if name != "PAI_DEFAULT_FS_URI"),
    ),
    Observed(
        "SCM", "port list", "scm", '[ "$(echo "$PAI_PORT_LIST_main_0_web" | tr , "\\n" | grep -c .)" = 2 ]'
    ),
    Observed("SCM", "jobEnvs", "scm", '[ "$LR" = 0.1 ] && [ "$EPOCHS" = 3 ]'),
    Observed("SCM", "PAI_RESOURCE", "scm", '[ "$PAI_RESOURCE_main" = 0,1,512,128 ]'),
    Checked("SCM", "unique name", {**SCM, "jobName": "taken"}, "unique", Outcome.NOTE),
    Checked("SCM", "memoryMB at least 100", scm({"memoryMB": 50}), "at least 100", Outcome.NOTE),
    Checked("SCM", "taskNumber at least 1", scm({"taskNumber": 0}), "taskNumber", Outcome.NOTE),
    Checked("SCM", "cpuNumber at least 1", scm({"cpuNumber": 0}), "cpuNumber", Outcome.NOTE),
    Checked(
        "SCM",
        "ports in range",
        scm({"portList": [{"label": "a", "beginAt": 70000, "portNumber": 1}]}),
        "65535",
        Outcome.REFUSED,
    ),
    Checked(
        "SCM",
        "codeDir that nobody fetches",
        scm(codeDir="https://example.com/x.git"),
        "example.com",
        Outcome.REFUSED,
        on_slurm=Outcome.YES,
    ),
    Checked("SCM", "storageGB", scm({"storageGB": 10}), "Disk: No effect", on_slurm=Outcome.NOTE),
    Elsewhere(
        "SCM",
        "extras",
        "jobs/dialects/test_openpai_v1_samples.py::test_scm_samples_survive_round_trip_unchanged",
    ),
    Elsewhere(
        "SCM",
        "HelloWorld by form, paste and file",
        "flows/test_first_job.py::test_log_view_shows_lines_as_they_are_written",
        on_slurm="jobs/scheduling/test_on_slurm.py::test_slurm_runs_helloworld_of_scm_page",
    ),
    Elsewhere(
        "SCM",
        "Jupyter",
        "flows/test_jupyter.py::test_fixed_jupyter_job_opens_from_its_link_and_runs_a_cell",
        on_slurm="jobs/access/gateway/test_jupyter_on_slurm.py::test_notebook_template_on_slurm_opens_and_runs_cell_on_node",
    ),
    Elsewhere(
        "SCM",
        "address and port",
        "jobs/web/job/test_access.py::test_connect_tab_shows_network_address_when_allowed_by_admin",
    ),
    Elsewhere(
        "SCM", "web shell", "flows/test_interactive.py::test_shell_start_opens_the_terminal_and_runs_commands"
    ),
    Elsewhere("SCM", "SSH", "jobs/web/job/test_access.py::test_ssh_config_lines_are_valid_for_openssh"),
    Elsewhere("SCM", "PyCharm", f"{_CLIENTS}::test_pycharm_helpers_upload_and_run_with_the_job_interpreter"),
    Elsewhere(
        "SCM",
        "Visual Studio Code",
        f"{_CLIENTS}::test_vs_code_installs_and_reaches_its_server_over_one_connection",
    ),
    Elsewhere(
        "SCM",
        "variables of a task",
        "jobs/node/wrapper/test_environment.py::test_environment_has_openpai_task_variables",
    ),
    Elsewhere(
        "SCM",
        "authFile on HDFS",
        f"{_LOCAL}/test_code_sources.py::test_auth_file_of_hdfs_is_read_as_the_person",
        on_slurm=None,
    ),
    Elsewhere(
        "SCM",
        "dataDir, outputDir and codeDir on HDFS",
        f"{_LOCAL}/test_code_sources.py::test_code_archive_and_hdfs_directories_are_brought_and_output_is_stored",
        on_slurm=f"{_STAGING}::test_code_archive_and_code_dir_of_hdfs_are_staged_on_nodes",
    ),
    Elsewhere(
        "SCM",
        "codeDir is read-only",
        f"{_LOCAL}/test_code_sources.py::test_code_dir_by_git_is_read_only_and_named_by_its_repository",
        on_slurm=None,
    ),
    Elsewhere(
        "SCM",
        "codeDir below 200 MB",
        f"{_LOCAL}/test_code.py::test_code_dir_over_200_mb_is_refused",
        on_slurm=None,
    ),
    Elsewhere(
        "SCM",
        "virtualCluster",
        f"{_VENDORS}/openpai/test_submission.py::test_submit_to_virtual_cluster_uses_quota",
    ),
    Elsewhere(
        "SCM",
        "neighbouring fixed ports",
        "jobs/backends/test_fixed_ports.py::test_fixed_ports_with_neighbouring_labels_stay_distinct",
    ),
    Elsewhere(
        "SCM",
        "counts of failed and succeeded tasks",
        "jobs/test_states.py::test_verdict_follows_completion_counts_of_scm_page",
        on_slurm=f"{_SLURM}/test_jobs.py::test_chief_success_ends_servers_and_tolerates_failures",
    ),
    Elsewhere(
        "SCM", "retryCount", "jobs/scheduling/test_reconcile.py::test_failed_job_is_retried_up_to_its_limit"
    ),
    Elsewhere("SCM", "gpuType", "jobs/scheduling/test_admission.py::test_gpu_type_alias_matches_job_request"),
    Elsewhere(
        "SCM",
        "isDebug",
        "jobs/dialects/test_openpai_v1_reading.py::test_is_debug_sets_retention_of_failed_container",
    ),
    Elsewhere(
        "SCM",
        "isDebug, by an engine",
        f"{_LOCAL}/test_images.py::test_failed_container_is_retained_on_request_until_folder_removal",
        on_slurm=None,
    ),
    Elsewhere("SCM", "client of OpenPAI", "clients/test_openpai_js.py::test_sdk_v1_runs_job_to_its_end"),
    Checked(
        "SCM", "TITANX where there is none", scm({"gpuNumber": 1}, gpuType="TITANX"), "GPU", Outcome.REFUSED
    ),
    Checked("SCM", "jobName's characters", scm(jobName="a b"), "jobName", Outcome.REFUSED),
    Checked("SCM", "task role's name", scm({"name": "a b"}), "name", Outcome.REFUSED),
    Checked("SCM", "command is not empty", scm({"command": ""}), "command", Outcome.REFUSED),
    Checked("SCM", "gpuNumber at least 0", scm({"gpuNumber": -1}), "gpuNumber", Outcome.NOTE),
    Checked("SCM", "retryCount not below 0", scm(retryCount=-1), "retryCount", Outcome.NOTE),
    Elsewhere(
        "SCM",
        "shmMB: 64 by default",
        "jobs/dialects/test_openpai_v1_reading.py::test_shared_memory_default_may_exceed_memory",
    ),
    Elsewhere(
        "SCM",
        "names are unique",
        "jobs/dialects/test_openpai_v1_reading.py::test_duplicate_role_or_port_name_uses_the_later_one",
    ),
    Elsewhere(
        "SCM",
        "jobEnvs in the form",
        "jobs/form/test_changes.py::test_variables_are_rows_with_values_or_secrets",
    ),
    Elsewhere("SCM", "key", "jobs/web/job/test_access.py::test_job_key_is_downloaded_and_used_in_commands"),
    Elsewhere(
        "SCM",
        "SFTP",
        "jobs/access/terminal_gateway/test_ssh.py::test_sftp_lists_creates_renames_and_removes",
        on_slurm=f"{_SLURM}/test_session_listener.py::test_listener_serves_ports_and_sftp",
    ),
    # AIHC's page
    Observed("AIHC", "environment variables", "aihc", '[ "$FOO" = bar ]'),
    Observed("AIHC", "AIHC_TENSORBOARD_LOG_PATH", "aihc", '[ -n "$AIHC_TENSORBOARD_LOG_PATH" ]'),
    Checked("AIHC", "only PyTorchJob", {**AIHC, "jobType": "TFJob"}, "TFJob", Outcome.NOTE),
    Checked(
        "AIHC",
        "queue",
        {name: value for name, value in AIHC.items() if name != "queue"},
        "queue is missing",
        Outcome.NOTE,
    ),
    Checked(
        "AIHC",
        "TensorBoard",
        {**AIHC, "tensorboardConfig": {"enable": True, "logPath": "/l"}},
        "TensorBoard: No",
    ),
    Checked("AIHC", "alertConfig", {**AIHC, "alertConfig": {"alertName": "x"}}, "alertConfig", Outcome.NOTE),
    Elsewhere(
        "AIHC",
        "alertItems of alertConfig",
        "jobs/notifications/test_routing.py::test_routing_alert_of_job_file_reaches_owner_whatever_the_rules_say",
    ),
    Checked("AIHC", "faultTolerance", {**AIHC, "faultTolerance": True}, "Fault tolerance: No effect"),
    Elsewhere(
        "AIHC",
        "sample of the page, until its address is mapped",
        "jobs/submission/checks/test_feasibility.py::test_page_sample_is_refused_until_its_address_is_mapped",
        Outcome.REFUSED,
    ),
    Elsewhere(
        "AIHC",
        "sample of the page, mapped",
        f"{_LOCAL}/test_converted.py::test_vendor_sample_runs_once_admin_maps_its_resources",
        on_slurm=None,
    ),
    Elsewhere(
        "AIHC",
        "enableBccl and enableRDMA",
        "jobs/backends/staging/test_software.py::test_bccl_and_rdma_set_their_variables",
    ),
    Elsewhere(
        "AIHC",
        "hang and patterns",
        "jobs/scheduling/test_fault_tolerance.py::test_hanging_job_is_ended_and_restarted_then_fails",
    ),
    Elsewhere(
        "AIHC",
        "TensorBoard, observed",
        f"{_LOCAL}/test_tensorboard.py::test_tensorboard_shows_what_a_job_logs_and_ends_with_it",
        on_slurm=f"{_SLURM}/test_tensorboard.py::test_tensorboard_runs_beside_the_first_replica_until_the_job_ends",
    ),
    Elsewhere("AIHC", "resourcePoolId and queue", "clients/test_bce_sdk.py::test_sdk_reads_pools_and_queues"),
    Elsewhere(
        "AIHC", "request of the page", "clients/test_bce_sdk.py::test_sdk_sends_the_sample_of_the_page"
    ),
    Checked("AIHC", "enableBccl", {**AIHC, "enableBccl": True}, "RDMA", Outcome.NOTE),
    Checked(
        "AIHC",
        "enableRDMA",
        {**AIHC, "jobSpec": {**AIHC["jobSpec"], "enableRDMA": True}},
        "RDMA: No effect",
    ),
    Checked(
        "AIHC",
        "faultToleranceArgs",
        {**AIHC, "faultTolerance": True, "faultToleranceArgs": "--enable-hang-detection=true"},
        "enable-hang-detection",
    ),
    Elsewhere("AIHC", "labels", "jobs/dialects/test_aihc_reading.py::test_labels_become_tags"),
    Elsewhere("AIHC", "priority", "jobs/dialects/test_aihc_reading.py::test_priority_words_map_to_numbers"),
    Elsewhere(
        "AIHC",
        "queueId and datasource",
        "jobs/dialects/test_aihc_reading.py::test_aihc_page_sample_is_read_as_printed",
    ),
    # What else did not come true when it was tried
    Elsewhere(
        "Defects",
        "codes have sentences",
        "jobs/messages/test_codes.py::test_codes_of_either_kind_all_have_a_sentence",
    ),
    Elsewhere(
        "Defects",
        "dataset with read_only false",
        "jobs/assets/test_api.py::test_dataset_is_read_only_as_requested",
    ),
    Elsewhere(
        "Defects",
        "workspace without a name in site.yaml",
        "console/management/test_apply.py::test_omitted_name_and_description_are_unchanged",
    ),
    Elsewhere(
        "Defects",
        "upload is no unknown code",
        "jobs/assets/test_resolution.py::test_upload_is_no_unknown_asset",
    ),
    Elsewhere(
        "Defects",
        "amounts beside an unknown size",
        "jobs/dialects/test_dlc_reading.py::test_unknown_instance_type_never_replaces_amounts",
    ),
    Elsewhere(
        "Defects",
        "every field without effect is noted",
        "jobs/backends/test_effects.py::test_unused_fields_are_those_that_the_support_table_keeps",
    ),
)
"""The rows of the pages, with their outcomes on clusters without images."""


def title(row: Row) -> str:
    """Return the row's page and name."""
    return f"{row.page}: {row.name}"


def expected(row: Row, cluster: str) -> Outcome:
    """Return the row's outcome on a cluster."""
    if cluster == SLURM and isinstance(row.on_slurm, Outcome):
        return row.on_slurm
    return row.outcome


def files() -> dict[str, str]:
    """Return the job files that run, by name; each prints a line for each of its rows."""
    made = {}
    for name, job in JOBS.items():
        rows = [row for row in ROWS if isinstance(row, Observed) and row.job == name]
        lines = [
            f'if {{ {row.test}; }} >/dev/null 2>&1; then echo "row {title(row)}: yes"; fi' for row in rows
        ]
        command = "\n".join([*lines, "true"])
        made[name] = json.dumps(_with_command({**job, **_named(job, name)}, command))
    return made


def _named(job: Mapping[str, Any], name: str) -> dict[str, str]:
    key = next(key for key in ("DisplayName", "jobName", "name") if key in job)
    return {key: name}


def _with_command(job: dict[str, Any], command: str) -> dict[str, Any]:
    if "taskRoles" in job:
        return {**job, "taskRoles": [{**role, "command": command} for role in job["taskRoles"]]}
    key = "UserCommand" if "UserCommand" in job else "command"
    return {**job, key: command}


def judge(user: User, cluster: str, logs: Mapping[str, str]) -> dict[str, Outcome]:
    """Return what became of each row on a cluster, by title; `logs` are those of the jobs' first replicas."""
    return {title(row): _judge(user, row, cluster, logs) for row in ROWS if is_tried(row, cluster)}


def is_tried(row: Row, cluster: str) -> bool:
    """Tell whether the row is observed on a cluster."""
    return cluster == LOCAL or not isinstance(row, Elsewhere) or row.on_slurm is not None


def _judge(user: User, row: Row, cluster: str, logs: Mapping[str, str]) -> Outcome:
    if isinstance(row, Elsewhere):
        test = row.on_slurm if cluster == SLURM and row.on_slurm else row.test
        file, _colons, name = test.partition("::")
        return row.outcome if name in _tests_of(file) else Outcome.NO
    if isinstance(row, Observed):
        if f"row {title(row)}: yes" in logs[row.job]:
            return Outcome.YES
        notes = examine(user, JOBS[row.job], cluster).notes
        return Outcome.NOTE if _mention(notes, f"{row.name.capitalize()}: No effect") else Outcome.NO
    found = examine(user, row.file, cluster, row.quota)
    if _mention(found.problems, row.word):
        return Outcome.REFUSED
    if found.problems:
        return Outcome.NO
    if _mention(found.notes, row.word):
        return Outcome.NOTE
    return Outcome.YES if expected(row, cluster) is Outcome.YES else Outcome.NO


def examine(user: User, file: Mapping[str, Any], cluster: str, quota: str = "default") -> findings.Findings:
    """Return the problems and notes of a job file on a cluster."""
    target = submission.JobTarget(cluster=cluster, quota=quota)
    return findings.examine(user, Document(json.dumps(file)), place=target)


def _mention(found: Iterable[Finding], word: str) -> bool:
    return any(word in each.message for each in found)


@cache
def _tests_of(file: str) -> frozenset[str]:
    """Return the names of a file's tests."""
    tree = ast.parse((Path(__file__).parent / file).read_text(encoding="utf-8"))
    return frozenset(
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def publish(text: str) -> None:
    """Add the text to the file that MISSION_TABLE names, if it does (`make mission`)."""
    if name := os.environ.get("MISSION_TABLE"):
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n\n")


def sample_table(cluster: str, outcomes: Mapping[str, str]) -> str:
    """Return what became of the samples on a cluster, as text."""
    lines = (f"  {name:<35} {' '.join(outcomes[name].split())}" for name in sorted(outcomes))
    return "\n".join([f"{cluster}:", *lines])


def table(outcomes: Mapping[str, Mapping[str, Outcome]]) -> str:
    """Return the rows with their outcomes on each cluster, as text."""
    titles = list(next(iter(outcomes.values())))
    rows = [[name, *(outcomes[cluster].get(name, "-") for cluster in outcomes)] for name in titles]
    return "\n".join(f"{name:<60} " + "  ".join(f"{each:<21}" for each in rest) for name, *rest in rows)
