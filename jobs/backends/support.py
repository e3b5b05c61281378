"""Backend support: what becomes of each field of a JobSpec on each backend, with the test that shows it.

Here is what is the same on every backend; a backend has its own rows in its module `support`.  The form
shows beside a field what the chosen backend does not do with it, and `make docs` makes a page of the tables.
A path stands for everything below it, unless that stands there itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from jobs.backends.settings import mark as _


class Fate(StrEnum):
    """The fate of a field on a backend.

    HONOURED: the job has it.  CONSOLE: this console sees to it, whatever the backend.  APPROXIMATED: it has
    something near to it.  REFUSED: a job that asks for it is not taken.  KEPT: it stays in the file, for
    export, and nothing is done with it here.
    """

    HONOURED = "honoured"
    CONSOLE = "console"
    APPROXIMATED = "approximated"
    REFUSED = "refused"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class Support:
    """The support of a field on a backend.

    `test` is the one that looks, below tests/; `why` is a sentence that is marked for translation, where
    there is something to say.  `members` are the keys of a map that have an effect; None are all.
    `reasons` say why single other keys have none.
    """

    fate: Fate
    test: str = ""
    why: str = ""
    members: frozenset[str] | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)


def honour(test: str, why: str = "") -> Support:
    """Return the row of a field that the job has."""
    return Support(Fate.HONOURED, test, why)


def leave_to_console(test: str, why: str = "") -> Support:
    """Return the row of a field that the console sees to."""
    return Support(Fate.CONSOLE, test, why)


def approximate(
    why: str,
    test: str = "",
    members: frozenset[str] | None = None,
    reasons: Mapping[str, str] = MappingProxyType({}),
) -> Support:
    """Return the row of a field to which the job has something near."""
    return Support(Fate.APPROXIMATED, test, why, members, reasons)


def refuse(why: str, test: str) -> Support:
    """Return the row of a field with which a job is refused."""
    return Support(Fate.REFUSED, test, why)


def keep(why: str) -> Support:
    """Return the row of a field that stays in the file."""
    return Support(Fate.KEPT, why=why)


OPTIONS_OF_MEMORY: Final = _("Only the size of a memory mount applies.")
RAY_OPTIONS: Final = _(
    "Ray uses its runtime environment, object store size and retries of the submitter. The other "
    "settings are kept for export."
)
OWN_HOST: Final = _("Submodules are fetched from the repository's own host.")
NODE_MOUNTS: Final = _("Folders on the nodes, and addresses mapped to them or, read-only, to a bucket.")
NODE_CODE: Final = _("Git repositories, archives, HDFS and mapped buckets.")
LIBRARY_FILES: Final = _(
    "requirements.txt is installed by pip, environment.yml by conda, mamba or micromamba, and uv.lock or "
    "pyproject.toml by uv, as found on the job's PATH."
)
"""Reasons that several backends have."""

MOUNT_OPTIONS: Final = frozenset({"medium", "sizeLimit", "endpoint", "region"})
"""Options of mounts that mean something here: of memory mounts, and of object stores."""

MOUNT_OPTION_REASONS: Final[Mapping[str, str]] = {
    "mountType": _("Object stores are not mounted here: data is copied in before the job, and out after it."),
    "nconnect": _("The nodes mount network file systems themselves, with the options that an admin chose."),
}
"""Why options that the DLC page names ("Mount storage", advanced settings) have no effect."""

_REGISTERED: Final = _("IDs registered in this console.")
_OF_VENDOR: Final = _("Specific to the vendor's cloud; kept for export.")

CONTRACT: Final = "jobs/backends/test_contract.py"
_ADMITTING: Final = "jobs/scheduling/test_admission.py"
_RECONCILE: Final = "jobs/scheduling/test_reconcile.py"

EVERYWHERE: Final[Mapping[str, Support]] = {
    "description": keep(_("For readers of the file only.")),
    "tags": leave_to_console("jobs/scheduling/test_idle.py::test_idle_job_exempt_by_policy_is_not_warned"),
    "workspace": keep(_("Select where the job runs here; the file's value is not used.")),
    "quota": leave_to_console(
        "jobs/api/test_submit.py::test_submit_uses_the_given_workspace_cluster_and_quota",
        _("If no quota is selected, the quota with this short name is used."),
    ),
    "priority": leave_to_console(f"{_RECONCILE}::test_admission_starts_higher_priority_first_then_older"),
    "retry": leave_to_console(f"{_RECONCILE}::test_failed_job_is_retried_up_to_its_limit"),
    "alert": leave_to_console("jobs/scheduling/test_idle.py::test_alert_is_told_once_until_it_clears"),
    "roles[].restart.condition": leave_to_console(
        f"{_RECONCILE}::test_restart_policy_of_failed_role_bounds_retries"
    ),
    "hold": leave_to_console(f"{_ADMITTING}::test_job_submitted_held_or_for_later_stays_queued"),
    "after": leave_to_console(
        "jobs/submission/test_dependencies.py::test_dependent_job_starts_after_named_job"
    ),
    "after_never": leave_to_console(
        "jobs/submission/test_dependencies.py::test_dependency_never_satisfied_holds_job_if_requested"
    ),
    "not_before": leave_to_console(f"{_ADMITTING}::test_job_submitted_held_or_for_later_stays_queued"),
    "idle": leave_to_console(
        "quotas/admission/test_admission.py::test_idle_accepting_job_borrows_unused_resources"
    ),
    "roles[].bid": leave_to_console("quotas/admission/test_admission.py::test_bid_below_the_price_is_outbid"),
    "visibility": leave_to_console(
        "test_access_matrix.py::test_public_job_is_readable_by_members_but_not_by_strangers"
    ),
    "roles[].resources.instance_type": approximate(
        _("Converted to the known resource amounts of the instance type."),
        "jobs/dialects/test_dlc_reading.py",
    ),
    "reserve_after": leave_to_console(
        "jobs/scheduling/test_retention.py::test_retained_job_keeps_its_files_and_is_then_deleted",
        _("Files are retained, then the job is deleted; resources are released when the job ends."),
    ),
    "fault_tolerance": leave_to_console(
        "jobs/scheduling/test_fault_tolerance.py::test_failed_job_is_restarted_as_the_table_says",
        _("The console itself restarts failed and hanging jobs; a note names arguments without effect."),
    ),
    "fault_tolerance.restart_scope": honour(
        "jobs/scheduling/test_replica_restarts.py::"
        "test_failed_replica_is_restarted_alone_unless_it_is_its_own_error"
    ),
    "sanity_check": honour(
        "jobs/backends/local/test_sanity_checks.py::test_replicas_check_their_nodes_before_the_command",
        _("Runs before the commands; a note names arguments without effect."),
    ),
    "network": keep(_OF_VENDOR),
    "framework_options": keep(_OF_VENDOR),
}
"""What the console does, or leaves undone, by itself."""

USUAL: Final[Mapping[str, Support]] = {
    "roles[].command": honour(f"{CONTRACT}::test_job_run_reports_its_end_with_exit_code"),
    "grace_s": honour(f"{CONTRACT}::test_stop_kills_process_ignoring_signal_after_grace_period"),
    "roles[].restart.limit": approximate(
        _("torchrun starts its processes again so often; the replica itself by fault tolerance."),
        "jobs/node/wrapper/test_environment.py::test_environment_of_pytorch_spans_replicas_and_knows_minimum",
    ),
    "mounts[].id": leave_to_console("jobs/assets/test_resolution.py", _REGISTERED),
    "code.id": leave_to_console("jobs/assets/test_resolution.py", _REGISTERED),
    "software.bccl": approximate(
        _("BCCL is loaded where it is installed in the image or on the node; otherwise NCCL is used."),
        "jobs/backends/staging/test_software.py::test_bccl_and_rdma_set_their_variables",
    ),
}
"""Rows of every backend that has no other one for the field."""


def find_support(table: Mapping[str, Support], path: str) -> Support | None:
    """Return the row for the field at a path, `roles[].nodes.only`; None where there is none."""
    row = find_row(table, path)
    return table[row] if row is not None else None


def find_row(table: Mapping[str, Support], path: str) -> str | None:
    """Return the path of the row for the field at a path: its own, or that of the nearest thing around it."""
    names = path.split(".")
    for count in range(len(names), 0, -1):
        around = ".".join(names[:count])
        for each in (around, around.removesuffix("[]")):
            if each in table:
                return each
    return None
