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
    "roles": _("Roles"),
    "roles/name": _("Role name"),
    "roles/replicas": _("Replicas"),
    "roles/command": _("Start command"),
    "roles/image": _("Image"),
    "roles/resources": _("Resources"),
    "roles/resources/cpu_milli": _("CPU"),
    "roles/resources/memory_mib": _("Memory"),
    "roles/resources/shm_mib": _("Shared memory"),
    "roles/resources/disk_mib": _("Disk"),
    "roles/resources/gpus": _("GPUs"),
    "roles/resources/gpu_type": _("GPU type"),
    "roles/resources/instance_type": _("Instance type"),
    "roles/resources/rdma": _("RDMA"),
    "roles/ports": _("Ports"),
    "roles/completion": _("Completion policy"),
    "roles/restart": _("Replica restarts"),
    "roles/env": _("Environment variable %(name)s"),
    "roles/bid": _("Bid"),
    "roles/nodes": _("Node selection"),
    "roles/init_containers": _("Init containers"),
    "roles/sidecars": _("Sidecar containers"),
    "roles/shared_paths": _("Shared volumes"),
    "env": _("Environment variable %(name)s"),
    "secret_env": _("Secret variable %(name)s"),
    "registry_auth": _("Image registry credentials"),
    "mounts": _("Mounts"),
    "code": _("Code"),
    "code/branch": _("Branch"),
    "code/commit": _("Commit"),
    "code/submodules": _("Submodules"),
    "requirements": _("Third-party libraries"),
    "workspace": _("Workspace"),
    "quota": _("Resource quota"),
    "priority": _("Priority"),
    "retry": _("Automatic retries"),
    "time_limit_s": _("Time limit"),
    "end_signal": _("Warning signal"),
    "grace_s": _("Grace period"),
    "keep_failed_s": _("Failed replica retention"),
    "hold": _("On hold"),
    "not_before": _("Earliest start"),
    "idle": _("Idle resources"),
    "cpu_affinity": _("CPU affinity"),
    "reserve_after": _("Retention"),
    "fault_tolerance": _("Fault tolerance"),
    "sanity_check": _("Sanity check"),
    "alert": _("Alert"),
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
    "name": _("job names"),
    "description": _("job descriptions"),
    "tags": _("tags"),
    "framework": _("training frameworks"),
    "roles": _("multiple roles"),
    "roles/name": _("custom role names"),
    "roles/replicas": _("multiple replicas per role"),
    "roles/command": _("a command per role"),
    "roles/image": _("an image per role"),
    "roles/resources": _("resources per role"),
    "roles/resources/cpu_milli": _("CPU amounts"),
    "roles/resources/memory_mib": _("memory amounts"),
    "roles/resources/shm_mib": _("shared memory amounts"),
    "roles/resources/disk_mib": _("disk amounts"),
    "roles/resources/gpus": _("GPU counts"),
    "roles/resources/gpu_type": _("GPU type selection"),
    "roles/resources/instance_type": _("instance types"),
    "roles/resources/rdma": _("RDMA"),
    "roles/ports": _("labelled ports"),
    "roles/completion": _("a completion policy per role"),
    "roles/restart": _("a restart policy per role"),
    "roles/env": _("environment variables per role"),
    "roles/bid": _("bids for spot resources"),
    "roles/nodes": _("node selection"),
    "roles/init_containers": _("init containers"),
    "roles/sidecars": _("sidecar containers"),
    "roles/shared_paths": _("volumes shared by containers"),
    "env": _("environment variables"),
    "secret_env": _("secret environment variables"),
    "registry_auth": _("image registry credentials"),
    "mounts": _("mounts of this kind"),
    "code": _("fetching code before start"),
    "requirements": _("installing Python packages before start"),
    "workspace": _("workspaces"),
    "quota": _("quotas"),
    "priority": _("priorities"),
    "retry": _("automatic retries"),
    "time_limit_s": _("time limits"),
    "end_signal": _("warning signals"),
    "grace_s": _("grace periods"),
    "keep_failed_s": _("keeping failed replicas for debugging"),
    "hold": _("submitting on hold"),
    "not_before": _("earliest start times"),
    "after": _("job dependencies"),
    "after_never": _("handling of unmet dependencies"),
    "software": _("environment modules and virtual environments"),
    "idle": _("borrowing idle resources"),
    "cpu_affinity": _("CPU affinity"),
    "reserve_after": _("resource retention after the end"),
    "fault_tolerance": _("fault tolerance"),
    "sanity_check": _("node sanity checks"),
    "alert": _("alerts by a threshold"),
    "tensorboard": _("TensorBoard for jobs"),
    "network": _("custom virtual networks"),
    "instance_role": _("instance roles"),
    "visibility": _("job visibility"),
    "framework_options": _("framework settings"),
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
    return gettext("%(role)s: %(field)s") % {"field": name, "role": role} if role else name


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
