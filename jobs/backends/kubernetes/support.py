"""Support of each field of a job on a Kubernetes cluster (`jobs.backends.support`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.backends.settings import mark as _
from jobs.backends.support import (
    LIBRARY_FILES,
    MOUNT_OPTION_REASONS,
    OPTIONS_OF_MEMORY,
    RAY_OPTIONS,
    Fate,
    Support,
    approximate,
    honour,
    keep,
)
from jobs.node.frameworks import ray

_OBJECTS: Final = "jobs/backends/test_kubernetes_objects.py"
_JOBS: Final = "jobs/backends/kubernetes/test_jobs.py"
_LACKING: Final = f"{_OBJECTS}::test_job_that_asks_for_what_the_cluster_lacks_is_refused"
_RANKS: Final = f"{_OBJECTS}::test_replicas_have_names_ranks_and_ports_of_the_attempt"
_MOUNTS: Final = f"{_OBJECTS}::test_mounts_become_claims_exports_and_empty_folders"
_HELLO: Final = f"{_JOBS}::test_hello_world_of_two_roles_runs_to_its_end"
_RESOURCES: Final = f"{_JOBS}::test_replica_has_the_requested_resources"
_VARIABLES: Final = f"{_JOBS}::test_variables_and_secrets_arrive_unchanged"
_NODES: Final = f"{_JOBS}::test_job_runs_on_allowed_nodes_alone"
_INIT: Final = f"{_JOBS}::test_init_containers_run_in_order_and_share_folders"
_PACKAGES: Final = f"{_JOBS}::test_packages_are_installed_before_the_command"
_LIMIT: Final = f"{_JOBS}::test_warning_signal_comes_before_the_time_limit"
_FETCHED: Final = f"{_JOBS}::test_code_from_an_archive_and_data_of_a_bucket_are_fetched_before_the_command"


def _refuse(why: str, test: str = "") -> Support:
    """Return the row of a field for which a job is not taken."""
    return Support(Fate.REFUSED, test, why)


SUPPORT: Final[Mapping[str, Support]] = {
    "name": honour(_VARIABLES, _("Available inside the job; its objects are named by a key instead.")),
    "framework": approximate(
        _(
            "Replicas are pods with the framework's variables, by Kubeflow's operator where it is installed. "
            "MPI, Ray and XGBoost require Python in the image."
        ),
        f"{_JOBS}::test_three_workers_find_rank_zero_by_name_and_reduce",
    ),
    "framework_options": approximate(
        RAY_OPTIONS,
        members=ray.OPTIONS,
    ),
    "roles[].name": honour(_RANKS),
    "roles[].replicas": honour(_RANKS),
    "roles[].image": honour(
        f"{_JOBS}::test_image_that_can_not_be_pulled_fails_the_job",
        _("The image needs a shell. The cluster settings may have a default image."),
    ),
    "roles[].resources.cpu_milli": honour(_RESOURCES),
    "roles[].resources.memory_mib": honour(_RESOURCES),
    "roles[].resources.shm_mib": approximate(
        _("Counts as memory of the replica. Before Kubernetes 1.22 the size is not a limit."), _RESOURCES
    ),
    "roles[].resources.disk_mib": approximate(
        _("A replica that exceeds it is evicted by its node."), _RESOURCES
    ),
    "roles[].resources.gpus": honour(_RESOURCES),
    "roles[].resources.gpu_type": honour(
        f"{_OBJECTS}::test_gpu_type_chooses_nodes_by_label_and_tolerates_their_taint"
    ),
    "roles[].resources.rdma": approximate(
        _("Sets NCCL_IB_DISABLE=0, and requests the resource that the cluster settings name."), _LACKING
    ),
    "roles[].ports": honour(f"{_JOBS}::test_requested_port_is_ready_when_something_listens"),
    "roles[].completion.min_failed": honour(_HELLO),
    "roles[].completion.min_succeeded": honour(_HELLO),
    "roles[].restart.limit": approximate(
        _("torchrun starts its processes again so often; pods are not restarted."),
        "jobs/node/wrapper/test_environment.py::test_environment_of_pytorch_spans_replicas_and_knows_minimum",
    ),
    "roles[].env": honour(_VARIABLES),
    "roles[].nodes.only": honour(_NODES),
    "roles[].nodes.never": honour(_NODES),
    "roles[].nodes.labels": honour(f"{_JOBS}::test_job_that_no_node_is_labelled_for_waits_with_the_reason"),
    "roles[].init_containers": honour(_INIT),
    "roles[].sidecars": honour(
        f"{_JOBS}::test_sidecar_runs_beside_the_command_and_ends_with_it",
        _("Its output is not in the replica's log."),
    ),
    "roles[].shared_paths": honour(_INIT),
    "env": honour(_VARIABLES),
    "secret_env": honour(_VARIABLES),
    "registry_auth": honour(f"{_OBJECTS}::test_secret_values_are_in_the_secret_alone"),
    "registry_auth.file_uri": _refuse(_("Enter the login in the job file.")),
    "mounts[].purpose": honour(
        f"{_OBJECTS}::test_folder_of_nodes_is_mounted_below_the_one_that_an_admin_names"
    ),
    "mounts[].uri": honour(
        _FETCHED,
        _(
            "Claims (pvc://), NFS exports and folders of the nodes; mapped buckets and HDFS are read-only "
            "and require Python 3.10 in the image."
        ),
    ),
    "mounts[].path": honour(_MOUNTS),
    "mounts[].read_only": honour(f"{_JOBS}::test_folder_of_nodes_is_mounted_read_only_unless_named_writable"),
    "mounts[].options": approximate(
        OPTIONS_OF_MEMORY, _MOUNTS, frozenset({"medium", "sizeLimit"}), MOUNT_OPTION_REASONS
    ),
    "code": honour(f"{_JOBS}::test_uploaded_code_is_in_the_working_folder"),
    "code.uri": honour(
        _FETCHED,
        _(
            "Repositories by HTTPS, and uploads of up to 8 MB; archives, HDFS and mapped buckets require "
            "Python 3.10 in the image."
        ),
    ),
    "code.submodules": honour(
        f"{_OBJECTS}::test_submodules_are_cloned_and_only_the_own_host_gets_the_login",
        _("The login is used for the repository's own host alone."),
    ),
    "requirements": honour(_PACKAGES, _("The image needs Python with pip.")),
    "requirements.directory": honour(_PACKAGES, LIBRARY_FILES),
    "software": approximate(
        _("Modules and environments must be in the image."),
        "jobs/backends/staging/test_software.py::test_bccl_and_rdma_set_their_variables",
    ),
    "time_limit_s": honour(
        f"{_JOBS}::test_time_limit_stops_the_job", _("Counts from when a pod has its node.")
    ),
    "end_signal": honour(_LIMIT, _("The image needs a shell.")),
    "keep_failed_s": keep(_("Folders of a replica end with it; use a mount.")),
    "cpu_affinity": keep(_("The CPU manager of each node decides.")),
    "sanity_check": approximate(_("Runs before the commands; its result is in the logs alone."), _HELLO),
    "fault_tolerance.restart_scope": approximate(_("The whole job is restarted."), _HELLO),
    "instance_role": _refuse(_("Jobs get no credentials of cloud roles here."), _LACKING),
    "tensorboard": keep(_("Run TensorBoard in the job, and open its port.")),
}
