"""Sentences for the words of Kubernetes about pods that wait or were ended.

Data alone, loaded and rendered by `jobs.messages.backend_texts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.backends.settings import mark as _

EXPECTED_START: Final = _("%(why)s Expected start: %(moment)s.")

_INSUFFICIENT: Final = "Insufficient"
_NO_RESOURCES: Final = _("Waiting: no node has enough free resources now (%(kubernetes)s).")
_OTHERWISE: Final = _("Waiting for Kubernetes' scheduler (%(kubernetes)s).")
_PENDING: Final[Mapping[str, str]] = {
    "None": _("Waiting for Kubernetes' scheduler."),
    "Taints": _("Waiting: nodes with free resources have taints that jobs here don't tolerate."),
    "NodeAffinity": _("Waiting: no eligible node has the requested labels, name or GPU type."),
    "Quota": _("Waiting: a resource quota of the namespace is used up."),
    "FailedCreate": _("Waiting: Kubernetes does not create the job's pods at the moment."),
    "KueueChecks": _("Waiting in Kueue: quota is reserved, but not all admission checks have passed."),
    "KueueEvicted": _("Waiting in Kueue after an eviction: %(detail)s"),
    "KueueQuota": _("Waiting in Kueue's queue: %(detail)s"),
    "OperatorPods": _("Waiting for Kubeflow's operator to create the job's pods."),
    "OperatorSilent": _("Waiting: Kubeflow's operator does not respond. Check that it is running."),
}

_IMAGE: Final = (_("The image can't be pulled yet: %(detail)s"),)

STATES: Final[Mapping[str, tuple[str, ...]]] = {
    "ErrImagePull": _IMAGE,
    "ImagePullBackOff": _IMAGE,
    "CreateContainerConfigError": (_("A container can't be started yet: %(detail)s"),),
    "CreateContainerError": (_("A container can't be started yet: %(detail)s"),),
    "ContainerStatusUnknown": (
        _("Node %(node)s lost a container of the job, and how it ended is unknown."),
        _("A node lost a container of the job, and how it ended is unknown."),
    ),
    "Deleted": (
        _("A pod of the job on node %(node)s was deleted in Kubernetes."),
        _("A pod of the job was deleted in Kubernetes."),
    ),
    "Drained": (
        _("A pod of the job was evicted because node %(node)s is being drained."),
        _("A pod of the job was evicted because its node is being drained."),
    ),
    "Evicted": (
        _("A pod of the job was evicted from node %(node)s: %(error)s"),
        _("A pod of the job was evicted from its node."),
    ),
    "KueueEvicted": (_("Kueue evicted the job."),),
    "OperatorFailed": (_("Kubeflow's operator could not run the job: %(error)s"),),
    "NodeLost": (_("Node %(node)s was lost."), _("The node was lost.")),
    "Preempted": (_("A pod of the job was preempted in Kubernetes by pods with a higher priority."),),
    "Preempting": (_("A pod of the job was preempted in Kubernetes by pods with a higher priority."),),
    "StartInterrupted": (
        _("Node %(node)s was interrupted while it started a container of the job: %(error)s"),
        _("A node was interrupted while it started a container of the job."),
    ),
}
"""Sentences for words about jobs that do not wait in the queue."""


def pending_sentence(word: str) -> str:
    """Return the sentence for the reason why a pod waits."""
    return _NO_RESOURCES if word.startswith(_INSUFFICIENT) else _PENDING.get(word, _OTHERWISE)
