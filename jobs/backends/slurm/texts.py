"""Sentences for Slurm's reasons and states of jobs (squeue(1), "JOB REASON CODES").

Loaded by `jobs.messages.backend_texts` alone: no other module of this backend needs the reader's language.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from jobs.messages import amounts
from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say

_CLUSTER_FULL: Final = _("Waits until enough of the cluster is free.")
_LESS_AT_ONCE: Final = _(
    "Slurm's limit %(slurm)s is reached: it starts when running jobs under that limit end."
)
_TOO_MUCH: Final = _(
    "It asks for more than Slurm's limit %(slurm)s lets one job have: it starts with less, or when an admin "
    "of Slurm raises the limit."
)
_ADMIN: Final = _("Slurm can't start it as things are (%(slurm)s): an admin of Slurm has to look.")
_NODES: Final = _(
    "The nodes that it could run on are down, drained or reserved: it starts when they are back, or on "
    "others if it allows them."
)

SENTENCES: Final[Mapping[str, str]] = {
    "None": _("Waits until Slurm's scheduler has looked at it."),
    "Resources": _CLUSTER_FULL,
    "Priority": _("Waits behind jobs with a higher priority."),
    "Dependency": _("Waits for other jobs to end."),
    "DependencyNeverSatisfied": _("Waits for a job that did not end as it should have: it never starts."),
    "BeginTime": _("Waits because it is not to start before a time that has not come."),
    "JobHeldUser": _("Held at Slurm by its user: it starts once it is released there (scontrol release)."),
    "JobHeldAdmin": _("Held at Slurm by an admin of Slurm, who can release it."),
    "JobHoldMaxRequeue": _(
        "Held at Slurm because it was started again too often: an admin of Slurm can release it."
    ),
    "BadConstraints": _(
        "No node of the cluster is as it asks for (size, type of GPU, features): submit it with other wishes."
    ),
    "ReqNodeNotAvail": _NODES,
    "NodeDown": _NODES,
    "PartitionDown": _("Its partition starts no jobs at the moment: an admin of Slurm can open it."),
    "PartitionInactive": _("Its partition starts no jobs at the moment: an admin of Slurm can open it."),
    "PartitionNodeLimit": _("It asks for more nodes than its partition lets one job have."),
    "PartitionTimeLimit": _("It asks for a longer running time than its partition allows."),
    "PartitionConfig": _(
        "Its partition does not allow what it asks for: fewer nodes, or a shorter running time."
    ),
    "AssociationJobLimit": _LESS_AT_ONCE,
    "AssociationResourceLimit": _LESS_AT_ONCE,
    "AssociationTimeLimit": _LESS_AT_ONCE,
    "QOSJobLimit": _LESS_AT_ONCE,
    "QOSResourceLimit": _LESS_AT_ONCE,
    "QOSTimeLimit": _LESS_AT_ONCE,
    "QOSUsageThreshold": _("The usage of its quality of service is above what Slurm allows for now."),
    "QOSNotAllowed": _("Its quality of service may not be used in its partition or by its account."),
    "InvalidAccount": _("Its account is none that Slurm knows: an admin has to mend the cluster's settings."),
    "InvalidQOS": _(
        "Its quality of service is none that Slurm knows: an admin has to mend the cluster's settings."
    ),
    "AccountNotAllowed": _("Its account may not use its partition."),
    "Licenses": _("Waits for a licence that others use."),
    "Reservation": _("Waits for its reservation to begin."),
    "ReservationDeleted": _("Its reservation was deleted: it never starts."),
    "Cleaning": _("Waits until what was left of its earlier start is cleaned up."),
    "Prolog": _("Waits for the preparation of its nodes."),
    "JobArrayTaskLimit": _("Waits because as many of its array run as it allows at once."),
    "BurstBufferResources": _("Waits for room in the burst buffer."),
    "BurstBufferStageIn": _("Waits until its data is in the burst buffer."),
    "BurstBufferOperation": _ADMIN,
    "FrontEndDown": _ADMIN,
    "SystemFailure": _ADMIN,
    "NonZeroExitCode": _ADMIN,
    "JobLaunchFailure": _ADMIN,
    "DeadLine": _("It can no longer end before its deadline: it never starts."),
    "MaxRequeue": _(
        "Held at Slurm because it was started again too often: an admin of Slurm can release it."
    ),
    "MaxMemPerLimit": _("It asks for more memory for each CPU or node than its partition allows."),
    "FedJobLock": _CLUSTER_FULL,
    "OutOfMemory": _ADMIN,
    "PowerNotAvail": _("Waits for electric power that others use."),
    "PowerReserved": _("Waits for electric power that is reserved for others."),
    "ReservationMaxQueuesExceeded": _ADMIN,
    "TimeLimit": _ADMIN,
    "InactiveLimit": _ADMIN,
    "WaitingForScheduling": _("Waits until Slurm's scheduler has looked at it."),
    "job requeued in held state": _(
        "Held at Slurm after it was put back into the queue: it starts again once it is released there "
        "(scontrol release)."
    ),
    "launch failed requeued held": _(
        "Held at Slurm because its node could not start it: an admin of Slurm has to look, and can "
        "release it."
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
    "CONFIGURING": (_("Its nodes are being made ready."),),
    "SUSPENDED": (_("Suspended at Slurm: it goes on when Slurm, or its admin, lets it."),),
    "STOPPED": (_("Stopped by a signal at Slurm: it goes on once it is told to."),),
    "CANCELLED": (_("Cancelled at Slurm, not from here."),),
    "REVOKED": (_("Withdrawn at Slurm: another cluster of its federation runs it."),),
    "TIMEOUT": (_("Ended by Slurm because the longest time it was allowed to run was over."),),
    "DEADLINE": (_("Ended by Slurm because it could no longer end before its deadline."),),
    "PREEMPTED": (_("Ended by Slurm to make room for jobs that go first."),),
    "NODE_FAIL": (
        _("Ended because Slurm lost its node %(node)s."),
        _("Ended because Slurm lost its node."),
    ),
    "BOOT_FAIL": (
        _("It never started because its node %(node)s did not come up."),
        _("It never started because its node did not come up."),
    ),
    "REWOUND": (
        _("Slurm's controller crashed just after it had started the job, forgot that, and ended it."),
    ),
    "UNBROUGHT": (
        _(
            "Its script ended with exit code %(exit_code)s, and its node did not reach the console then: "
            "what it wrote last is missing."
        ),
    ),
    "COURIER_FOLDER": (_("It never began: its node could not make the folder of the job in nodes_folder."),),
    "COURIER_AWAY": (
        _("It never began: its node did not reach the console, at the address that the cluster names."),
    ),
    "COURIER_REFUSED": (_("It never began: the console did not take its word for the job's own."),),
    "COURIER_PYTHON": (
        _("It never began: its node has no Python, with which files are carried to the console."),
    ),
    "JobLaunchFailure": (_("Slurm could not start it on its node: an admin of Slurm has to look."),),
    "NonZeroExitCode": (
        _("Its script ended before it had begun; what it said is in the job's folder (slurm.output)."),
    ),
}
"""The sentences of each state, or failed start; the console's own words among them (`states`)."""


def state_message(word: str, params: Mapping[str, object]) -> str | None:
    """Return the sentence for Slurm's word about a job that does not wait; None for an unknown word."""
    sentences = STATES.get(word)
    return say(sentences, params) if sentences else None


def pending_message(params: Mapping[str, object]) -> str:
    """Return the sentence for a reason: `slurm` is Slurm's word, `start` the expected start."""
    word = str(params.get("slurm") or "None").split(",")[0].strip("() ")
    why = say((_reason(word),), {"slurm": word})
    start = params.get("start")
    if not isinstance(start, int):
        return why
    moment = amounts.moment(datetime.fromtimestamp(start, UTC).isoformat())
    return say((_("%(why)s Slurm expects to start it at %(moment)s."),), {"why": why, "moment": moment})


def _reason(word: str) -> str:
    if word in SENTENCES:
        return SENTENCES[word]
    if word.startswith(LIMITS):
        return _TOO_MUCH if any(part in word for part in OF_ONE_JOB) else _LESS_AT_ONCE
    return _("Slurm's reason: %(slurm)s.")
