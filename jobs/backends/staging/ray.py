"""The roles of a Ray job as their replicas run them."""

from __future__ import annotations

from jobs.node.frameworks import ray
from jobs.spec import Framework, JobSpec, RoleSpec


def with_launcher(spec: JobSpec, role: RoleSpec) -> RoleSpec:
    """Return the role with the launcher that runs the job's command, and with room for the object store.

    All replicas get the command of their own role; the one with rank 0 runs it.
    """
    if spec.framework is not Framework.RAY:
        return role
    has, options = role.resources, spec.framework_options
    shared = max(has.shm_mib, ray.count_shared_memory_mib(options))
    command = ray.wrap_command(role.command, spec.replicas, role.name, has, options)
    update = {"command": command, "resources": has.model_copy(update={"shm_mib": shared})}
    return role.model_copy(update=update)
