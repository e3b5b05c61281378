"""Names of a job's fields, and the capabilities that a system needs for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from jobs.dialects.spans import split
from jobs.language import gettext
from jobs.messages.sentences import mark as _

_NAMES: Final[Mapping[str, str]] = {
    "name": _("Name"),
    "description": _("Description"),
    "tags": _("Tags"),
    "framework": _("Framework"),
    "roles": _("Task roles"),
    "roles/name": _("Name of the role"),
    "roles/replicas": _("Replicas"),
    "roles/command": _("Start command"),
    "roles/image": _("Image"),
    "roles/resources": _("Resources"),
    "roles/resources/cpu_milli": _("CPU"),
    "roles/resources/memory_mib": _("Memory"),
    "roles/resources/shm_mib": _("Shared memory"),
    "roles/resources/disk_mib": _("Disk"),
    "roles/resources/gpus": _("GPUs"),
    "roles/resources/gpu_type": _("Type of GPU"),
    "roles/resources/instance_type": _("Instance type"),
    "roles/resources/rdma": _("RDMA"),
    "roles/ports": _("Ports"),
    "roles/completion": _("Completion rules"),
    "roles/env": _("Environment variable %(name)s"),
    "roles/bid": _("Bid"),
    "roles/nodes": _("Choice of nodes"),
    "env": _("Environment variable %(name)s"),
    "secret_env": _("Secret variable %(name)s"),
    "registry_auth": _("Login for the image registry"),
    "mounts": _("Mounts"),
    "code": _("Code"),
    "code/branch": _("Branch"),
    "code/commit": _("Commit"),
    "requirements": _("Third-party libraries"),
    "workspace": _("Workspace"),
    "quota": _("Resource quota"),
    "priority": _("Priority"),
    "retry": _("Automatic retries"),
    "time_limit_s": _("Longest running time"),
    "end_signal": _("Signal before the end"),
    "grace_s": _("Grace after the stop"),
    "keep_failed_s": _("Keeping of failed replicas"),
    "hold": _("On hold"),
    "not_before": _("Not before"),
    "idle": _("Use of idle resources"),
    "cpu_affinity": _("CPU affinity"),
    "reserve_after": _("Retention"),
    "fault_tolerance": _("Fault tolerance"),
    "sanity_check": _("Sanity check"),
    "tensorboard": _("TensorBoard"),
    "network": _("Network"),
    "instance_role": _("Instance RAM role"),
    "visibility": _("Visibility"),
    "framework_options": _("Advanced framework settings"),
}
"""By the JobSpec path without numbers; the longest that fits counts."""

_ALL_OF_THEM: Final = {"roles/env": _("Environment variables"), "env": _("Environment variables")}
"""Names of maps as a whole."""


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
    """Return the capability for `path`, a JSON pointer into a JobSpec; "" for no such field."""
    found, _rest = _longest(split(path), _CAPABILITIES)
    return gettext(_CAPABILITIES[found]) if found else ""


def field_name(pointer: str, roles: Sequence[str] = ()) -> str:
    """Return the name of the JobSpec's field at `pointer`, with its role where `roles` are several.

    A pointer that leads elsewhere is its own name.
    """
    steps = split(pointer)
    path, rest = _longest(steps, _NAMES)
    if not path:
        return pointer
    name, role = _label(path, rest), _role(steps, roles)
    return gettext("%(field)s of %(role)s") % {"field": name, "role": role} if role else name


def _longest(steps: Sequence[str], table: Mapping[str, str]) -> tuple[str, Sequence[str]]:
    """Return the longest path of the steps that the table has, and the steps after it."""
    names = [step for step in steps if not step.isdigit() and step != "*"]
    for length in range(len(names), 0, -1):
        if (path := "/".join(names[:length])) in table:
            return path, names[length:]
    return "", ()


def _label(path: str, rest: Sequence[str]) -> str:
    if not rest and path in _ALL_OF_THEM:
        return gettext(_ALL_OF_THEM[path])
    return gettext(_NAMES[path]) % {"name": "/".join(rest)}


def _role(steps: Sequence[str], roles: Sequence[str]) -> str:
    if len(roles) < 2 or len(steps) < 2 or steps[0] != "roles" or not steps[1].isdigit():
        return ""
    return roles[int(steps[1])] if int(steps[1]) < len(roles) else ""
