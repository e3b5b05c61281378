"""What the fields of a job are called, as they stand in a list of changes, locks or questions."""

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
"""What a bag is called as a whole."""


def field_name(pointer: str, roles: Sequence[str] = ()) -> str:
    """What the JobSpec's field at `pointer` is called; of which role, where `roles` are several.

    A pointer that leads elsewhere is its own name.
    """
    steps = split(pointer)
    names = [step for step in steps if not step.isdigit() and step != "*"]
    for length in range(len(names), 0, -1):
        path = "/".join(names[:length])
        if path in _NAMES:
            called = _called(path, names[length:])
            role = _role(steps, roles)
            return gettext("%(field)s of %(role)s") % {"field": called, "role": role} if role else called
    return pointer


def _called(path: str, rest: Sequence[str]) -> str:
    if not rest and path in _ALL_OF_THEM:
        return gettext(_ALL_OF_THEM[path])
    return gettext(_NAMES[path]) % {"name": "/".join(rest)}


def _role(steps: Sequence[str], roles: Sequence[str]) -> str:
    if len(roles) < 2 or len(steps) < 2 or steps[0] != "roles" or not steps[1].isdigit():
        return ""
    return roles[int(steps[1])] if int(steps[1]) < len(roles) else ""
