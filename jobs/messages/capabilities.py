"""What a system must be able to do for a JobSpec's field to mean something there, in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.dialects.spans import split
from jobs.language import gettext
from jobs.messages.sentences import mark as _

_CAPABILITIES: Final[Mapping[str, str]] = {
    "name": _("names of jobs"),
    "description": _("a description of the job"),
    "tags": _("tags"),
    "framework": _("training frameworks"),
    "roles": _("several task roles"),
    "roles/name": _("free names of task roles"),
    "roles/replicas": _("several replicas of a role"),
    "roles/command": _("a command for each role"),
    "roles/image": _("an image for each role"),
    "roles/resources": _("resources for each role"),
    "roles/resources/cpu_milli": _("an amount of CPU"),
    "roles/resources/memory_mib": _("an amount of memory"),
    "roles/resources/shm_mib": _("an amount of shared memory"),
    "roles/resources/disk_mib": _("an amount of disk"),
    "roles/resources/gpus": _("an amount of GPUs"),
    "roles/resources/gpu_type": _("a choice of GPU types"),
    "roles/resources/instance_type": _("instance types"),
    "roles/resources/rdma": _("RDMA"),
    "roles/ports": _("labelled ports"),
    "roles/completion": _("completion rules for each role"),
    "roles/env": _("environment variables for each role"),
    "roles/bid": _("bids on spot resources"),
    "roles/nodes": _("a choice of nodes"),
    "env": _("environment variables"),
    "secret_env": _("secret environment variables"),
    "registry_auth": _("a login for an image registry"),
    "mounts": _("mounts of this kind"),
    "code": _("code that is fetched before the start"),
    "requirements": _("Python packages installed before the start"),
    "workspace": _("workspaces"),
    "quota": _("quotas"),
    "priority": _("priorities"),
    "retry": _("automatic retries"),
    "time_limit_s": _("a time limit"),
    "end_signal": _("a signal before the end"),
    "grace_s": _("a time of grace after the stop"),
    "keep_failed_s": _("keeping failed replicas for debugging"),
    "hold": _("submitting on hold"),
    "not_before": _("a time before which nothing starts"),
    "after": _("starting after other jobs"),
    "after_never": _("what becomes of a job that can start no more"),
    "software": _("environment modules and environments"),
    "idle": _("running on what others leave idle"),
    "cpu_affinity": _("CPU affinity"),
    "reserve_after": _("keeping resources after the end"),
    "fault_tolerance": _("fault tolerance"),
    "sanity_check": _("a sanity check of nodes"),
    "tensorboard": _("a TensorBoard beside the job"),
    "network": _("a virtual network of one's own"),
    "instance_role": _("an instance role"),
    "visibility": _("visibility of jobs"),
    "framework_options": _("settings of the framework"),
}
"""By the JobSpec path without numbers; the longest that fits counts."""


def capability_label(path: str) -> str:
    """What a target lacks that can't say `path`, a JSON pointer into a JobSpec; "" for no such field."""
    names = [token for token in split(path) if not token.isdigit()]
    for length in range(len(names), 0, -1):
        found = _CAPABILITIES.get("/".join(names[:length]))
        if found:
            return gettext(found)
    return ""
