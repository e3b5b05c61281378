"""Sentences for Slurm's reasons and states of jobs (squeue(1), "JOB REASON CODES").

Data alone, loaded and rendered by `jobs.messages.backend_texts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.backends.settings import mark as _

_CLUSTER_FULL: Final = _("Waiting for free resources on the cluster.")
_LESS_AT_ONCE: Final = _(
    "Waiting: Slurm limit %(slurm)s reached. Starts when running jobs under this limit end."
)
_TOO_MUCH: Final = _(
    "Exceeds Slurm's per-job limit %(slurm)s. Request less, or ask a Slurm admin to raise the limit."
)
_ADMIN: Final = _("Slurm can't start the job (%(slurm)s). Contact a Slurm admin.")
_NODES: Final = _(
    "Waiting: eligible nodes are down, drained or reserved. Starts when they are back, or "
    "on other nodes if the job allows them."
)

SENTENCES: Final[Mapping[str, str]] = {
    "None": _("Waiting for Slurm's scheduler."),
    "Resources": _CLUSTER_FULL,
    "Priority": _("Waiting behind jobs with a higher priority."),
    "Dependency": _("Waiting for other jobs to end."),
    "DependencyNeverSatisfied": _("Never starts: a job it depends on did not end as required."),
    "BeginTime": _("Waiting for the earliest start time."),
    "JobHeldUser": _("Held in Slurm by the user. Starts once released (scontrol release)."),
    "JobHeldAdmin": _("Held by a Slurm admin, who can release the job."),
    "JobHoldMaxRequeue": _("Held by Slurm after too many restarts. A Slurm admin can release the job."),
    "BadConstraints": _(
        "No node matches the request (size, GPU type, features). Change the request and submit again."
    ),
    "ReqNodeNotAvail": _NODES,
    "NodeDown": _NODES,
    "PartitionDown": _("Waiting: the partition is not starting jobs. A Slurm admin can open it."),
    "PartitionInactive": _("Waiting: the partition is not starting jobs. A Slurm admin can open it."),
    "PartitionNodeLimit": _("Requests more nodes than the partition allows per job."),
    "PartitionTimeLimit": _("Time limit exceeds the partition's maximum."),
    "PartitionConfig": _(
        "The partition does not allow this request. Use fewer nodes or a shorter time limit."
    ),
    "AssociationJobLimit": _LESS_AT_ONCE,
    "AssociationResourceLimit": _LESS_AT_ONCE,
    "AssociationTimeLimit": _LESS_AT_ONCE,
    "QOSJobLimit": _LESS_AT_ONCE,
    "QOSResourceLimit": _LESS_AT_ONCE,
    "QOSTimeLimit": _LESS_AT_ONCE,
    "QOSUsageThreshold": _("Waiting: QOS usage exceeds what Slurm allows at the moment."),
    "QOSNotAllowed": _("QOS not allowed in this partition or for this account."),
    "InvalidAccount": _("Account unknown to Slurm. An admin must fix the cluster settings."),
    "InvalidQOS": _("QOS unknown to Slurm. An admin must fix the cluster settings."),
    "AccountNotAllowed": _("Account not allowed in this partition."),
    "Licenses": _("Waiting for a license in use by other jobs."),
    "Reservation": _("Waiting for the reservation to begin."),
    "ReservationDeleted": _("Never starts: the reservation was deleted."),
    "Cleaning": _("Waiting for the cleanup of the previous run."),
    "Prolog": _("Waiting for the nodes to be prepared."),
    "JobArrayTaskLimit": _("Waiting: the job array's limit of concurrent tasks is reached."),
    "BurstBufferResources": _("Waiting for space in the burst buffer."),
    "BurstBufferStageIn": _("Waiting for data to be staged in to the burst buffer."),
    "BurstBufferOperation": _ADMIN,
    "FrontEndDown": _ADMIN,
    "SystemFailure": _ADMIN,
    "NonZeroExitCode": _ADMIN,
    "JobLaunchFailure": _ADMIN,
    "DeadLine": _("Never starts: can't finish before the deadline."),
    "MaxRequeue": _("Held by Slurm after too many restarts. A Slurm admin can release the job."),
    "MaxMemPerLimit": _("Requests more memory per CPU or node than the partition allows."),
    "FedJobLock": _CLUSTER_FULL,
    "OutOfMemory": _ADMIN,
    "PowerNotAvail": _("Waiting for electric power in use by other jobs."),
    "PowerReserved": _("Waiting for electric power reserved for other jobs."),
    "ReservationMaxQueuesExceeded": _ADMIN,
    "TimeLimit": _ADMIN,
    "InactiveLimit": _ADMIN,
    "WaitingForScheduling": _("Waiting for Slurm's scheduler."),
    "job requeued in held state": _(
        "Requeued and held in Slurm. Starts again once released (scontrol release)."
    ),
    "launch failed requeued held": _(
        "Held in Slurm because the node could not start the job. A Slurm admin must check and "
        "can release the job."
    ),
    "Nodes required for job are DOWN": _NODES,
}
"""The sentence of each reason, except for the limits of accounting."""

LIMITS: Final = ("Assoc", "QOS")
"""The beginnings of limits of accounting: AssocGrpGRES, QOSMaxGRESPerUser, QOSGrpNodeLimit …"""

OF_ONE_JOB: Final = (
    "PerJob",
    "PerNode",
    "MaxWallDuration",
    "MinCPU",
    "MinGRES",
    "MinMemory",
    "MinNode",
    "MinBB",
)
"""Parts of the names of limits of a single job, for which waiting does not help."""

STATES: Final[Mapping[str, tuple[str, ...]]] = {
    "CONFIGURING": (_("Preparing nodes."),),
    "SUSPENDED": (_("Suspended in Slurm. Continues when resumed by Slurm or a Slurm admin."),),
    "STOPPED": (_("Stopped by a signal in Slurm. Continues when resumed."),),
    "CANCELLED": (_("Cancelled in Slurm, not from this console."),),
    "REVOKED": (_("Revoked in Slurm: another cluster of the federation runs the job."),),
    "TIMEOUT": (_("Ended by Slurm: time limit reached."),),
    "DEADLINE": (_("Ended by Slurm: can't finish before the deadline."),),
    "PREEMPTED": (_("Preempted by Slurm for jobs with a higher priority."),),
    "NODE_FAIL": (
        _("Ended: node %(node)s failed."),
        _("Ended: the node failed."),
    ),
    "BOOT_FAIL": (
        _("Not started: node %(node)s failed to boot."),
        _("Not started: the node failed to boot."),
    ),
    "REWOUND": (
        _("Slurm's controller crashed right after starting the job, lost its record, and ended the job."),
    ),
    "UNBROUGHT": (
        _(
            "The script ended with exit code %(exit_code)s, but the node could not reach the "
            "console: the last output is missing."
        ),
    ),
    "COURIER_FOLDER": (_("Not started: the node could not create the job's folder in nodes_folder."),),
    "COURIER_AWAY": (_("Not started: the node could not reach the console at the configured address."),),
    "COURIER_REFUSED": (_("Not started: the console did not accept the node's credentials for the job."),),
    "COURIER_PYTHON": (
        _("Not started: the node has no Python, which is required to transfer files to the console."),
    ),
    "JobLaunchFailure": (_("Slurm could not start the job on its node. Contact a Slurm admin."),),
    "NonZeroExitCode": (_("The script ended before the job started. See slurm.output in the job's folder."),),
}
"""The sentences of each state, or failed start; the console's own words among them (`states`)."""


EXPECTED_START: Final = _("%(why)s Slurm's estimated start: %(moment)s.")


def pending_sentence(word: str) -> str:
    """Return the sentence for Slurm's reason why a job waits."""
    if word in SENTENCES:
        return SENTENCES[word]
    if word.startswith(LIMITS):
        return _TOO_MUCH if any(part in word for part in OF_ONE_JOB) else _LESS_AT_ONCE
    return _("Slurm's reason: %(slurm)s.")
