"""JobSpec → the values of OpenPAI's own keys, in the order of the SCM page's sample."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from jobs.dialects.fields import Text
from jobs.dialects.objects import as_object, free_name, secret_placeholders, without_empty, write_fields
from jobs.dialects.openpai_v1 import keys
from jobs.dialects.ours import export_data
from jobs.dialects.spans import split
from jobs.dialects.text_renderer import JsonObject
from jobs.dialects.variables import as_text, is_usable
from jobs.spec import JobSpec, MountPurpose, Resources, RetryPolicy, RoleSpec

ENV_VALUES: Final = "env_values"
"""An extra: the values in `jobEnvs` that are no text, by their names."""


def render_spec(spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
    """Return what OpenPAI's own keys say, in the order of the SCM page's sample, with `extras` put back."""
    job: JsonObject = {
        keys.JOB_NAME.key: _name(keys.JOB_NAME, spec.name),
        keys.IMAGE.key: next((role.image for role in spec.roles if role.image), ""),
        keys.AUTH_FILE.key: spec.registry_auth.file_uri if spec.registry_auth else "",
        **_directories(spec),
        **without_empty({keys.VIRTUAL_CLUSTER.key: spec.quota}),
        keys.RETRY_COUNT.key: retry_count(spec.retry),
        keys.TASK_ROLES.key: _roles(spec, export_data.read_role_names(extras)),
        keys.JOB_ENVS.key: _environment(spec, extras),
        keys.EXTRAS.key: {},
        keys.GPU_TYPE.key: _gpu_type(spec),
    }
    for pointer, value in extras.items():
        if pointer.startswith("/"):
            _put_back(job, split(pointer), value)
    return job


def _name(rule: Text, name: str) -> str:
    return name if rule.fits(name) else rule.propose(name)


def _directories(spec: JobSpec) -> JsonObject:
    """Return the first place of each purpose; OpenPAI's default output is left to be the default."""
    uris = {mount.purpose: mount.uri for mount in reversed(spec.mounts)}
    if uris.get(MountPurpose.OUTPUT) == keys.DEFAULT_OUTPUT:
        del uris[MountPurpose.OUTPUT]
    return {rule.key: uris.get(purpose, "") for rule, purpose in keys.DIRECTORIES}


def retry_count(retry: RetryPolicy) -> int:
    """Return the retryCount for a policy: -1 without end, -2 also after success."""
    if retry.limit is not None:
        return retry.limit
    return -2 if retry.on_success else -1


def _gpu_type(spec: JobSpec) -> str:
    """Return the type of the first role that has GPUs; without any, the first type named."""
    with_gpus = [role.resources.gpu_type for role in spec.roles if role.resources.gpus]
    named = [role.resources.gpu_type for role in spec.roles if role.resources.gpu_type]
    return (with_gpus or named or [""])[0]


def _environment(spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
    """Return `jobEnvs`, with the variables of single roles, where the job has none of that name.

    A value that was no text is written as it was while it still says the same.
    """
    variables: JsonObject = {}
    as_written = as_object(extras.get(ENV_VALUES))
    own = {name: value for role in reversed(spec.roles) for name, value in role.env.items()}
    for name, value in {**own, **spec.env}.items():
        original = as_written.get(name, value)
        variables[name] = original if as_text(original) == value else value
    variables |= secret_placeholders(spec)
    if spec.keep_failed_s:
        variables[keys.IS_DEBUG.key] = True
    if any(role.resources.rdma for role in spec.roles):
        variables[keys.RDMA.key] = True
    return variables


def _roles(spec: JobSpec, named: Mapping[str, str]) -> list[JsonObject]:
    """Return roles under names that v1 allows, each its own."""
    taken: set[str] = set()
    written = []
    for role in spec.roles:
        name = free_name(_name(keys.ROLE_NAME, named.get(role.name, role.name)), taken)
        taken.add(name)
        written.append(_role(role, name))
    return written


def _role(role: RoleSpec, name: str) -> JsonObject:
    has: Resources = role.resources
    most = role.replicas
    counts = (role.completion.min_failed, role.completion.min_succeeded)
    failed, succeeded = (None if count is None else min(count, most) for count in counts)
    return {
        keys.ROLE_NAME.key: name,
        keys.TASK_NUMBER.key: role.replicas,
        keys.CPU_NUMBER.key: math.ceil(has.cpu_milli / 1000),
        keys.MEMORY_MB.key: has.memory_mib,
        **_shared_memory(has),
        keys.GPU_NUMBER.key: has.gpus,
        **write_fields((keys.STORAGE_GB,), has),
        keys.MIN_FAILED.key: failed,
        keys.MIN_SUCCEEDED.key: succeeded,
        keys.COMMAND.key: role.command,
        keys.PORT_LIST.key: _ports(role),
    }


def _shared_memory(has: Resources) -> JsonObject:
    """Return shmMB: it may not be more than memoryMB, except by being left out, when it is 64."""
    if has.shm_mib == keys.SHM_MB.default and has.shm_mib > has.memory_mib:
        return {}
    return {keys.SHM_MB.key: min(has.shm_mib, has.memory_mib)}


def _ports(role: RoleSpec) -> list[JsonObject]:
    taken: set[str] = set()
    written: list[JsonObject] = []
    for port in role.ports:
        label = free_name(_name(keys.LABEL, port.label), taken)
        taken.add(label)
        written.append(
            {
                keys.LABEL.key: label,
                keys.BEGIN_AT.key: port.begin_at,
                keys.PORT_NUMBER.key: port.count,
            }
        )
    return written


def _put_back(job: JsonObject, tokens: list[str], value: object) -> None:
    """Put one extra back where it was; elements of lists are named by their identity, not their place."""
    where: object = job
    for token in tokens[:-1]:
        if isinstance(where, list):
            named = (each for each in where if token in (each.get("name"), each.get("label")))
            where = next(named, None)
        elif isinstance(where, dict):
            where = where.get(token)
    if not isinstance(where, dict):
        return
    if tokens[0] != keys.JOB_ENVS.key or not is_usable(tokens[-1]):  # variables are `_environment`'s
        where[tokens[-1]] = value
