"""The part of `extras` that means something elsewhere too, where it has changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.dialects.openpai_v1.keys import KEEP_FAILED_S
from jobs.dialects.openpai_v2 import keys
from jobs.dialects.openpai_v2.extras import (
    TEAMWISE,
    TENSORBOARD,
    as_object,
    plugins,
    sku_keys,
)
from jobs.dialects.openpai_v2.role_document import labelled
from jobs.dialects.rendering import JsonObject
from jobs.spec import JobSpec, Mount, RetryPolicy, TensorBoard

_LOGS: Final = "logs"


def write_extras(job: JsonObject, there: JobSpec | None, spec: JobSpec, names: Mapping[str, str]) -> None:
    """Bring `extras` in line with `spec`."""
    extras = dict(as_object(job.get(keys.EXTRAS.key)))
    _hived(extras, there, spec, names)
    _storages(extras, there, spec)
    if spec.tensorboard != (there and there.tensorboard):
        _tensorboard(extras, spec.tensorboard)
    _ours(job, extras, there, spec, names)
    if extras or keys.EXTRAS.key in job:
        job[keys.EXTRAS.key] = extras


def _hived(extras: JsonObject, there: JobSpec | None, spec: JobSpec, names: Mapping[str, str]) -> None:
    """Priority and types of GPUs, as the HiveD scheduler is told."""
    hived = dict(as_object(extras.get(keys.HIVED.key)))
    if spec.priority != (there and there.priority):
        _set(hived, keys.PRIORITY_CLASS.key, _priority_class(spec.priority))
    before = {role.name: role.resources.gpu_type for role in there.roles} if there else {}
    roles = dict(as_object(hived.get(keys.HIVED_ROLES.key)))
    for role in spec.roles:
        name, wanted = names[role.name], role.resources.gpu_type
        if wanted == before.get(role.name, ""):
            continue
        said = dict(as_object(roles.get(name)))
        used = (sku_keys(said) or [keys.SKU_TYPE.key])[0]
        _set(said, used, wanted)
        if wanted and role.resources.gpus and len(said) == 1:
            said["skuNum"] = role.resources.gpus
        _set(roles, name, said)
    _set(hived, keys.HIVED_ROLES.key, roles)
    _set(extras, keys.HIVED.key, hived)


def _priority_class(priority: int | None) -> str:
    """The class of a priority: 8 and 9 are crit, 6 and 7 prod, 3 to 5 test, 1 and 2 oppo."""
    if priority is None:
        return ""
    return next(
        word for least, word in ((8, "crit"), (6, "prod"), (3, "test"), (1, "oppo")) if priority >= least
    )


def _storages(extras: JsonObject, there: JobSpec | None, spec: JobSpec) -> None:
    """Storages that the target knows by name; where they are said anew, all are said in one way."""
    wanted = [mount for mount in spec.mounts if _is_storage(mount)]
    if there is not None and [mount for mount in there.mounts if _is_storage(mount)] == wanted:
        return
    rest = [each for each in plugins(extras) if each.get(keys.PLUGIN.key) != TEAMWISE]
    if len(rest) < len(plugins(extras)):
        _set(extras, keys.PLUGINS.key, rest)
    said = [
        {keys.STORAGE_NAME.key: mount.id, **({keys.STORAGE_PATH.key: mount.path} if mount.path else {})}
        for mount in wanted
    ]
    _set(extras, keys.STORAGES.key, said)


def _is_storage(mount: Mount) -> bool:
    return bool(mount.id) and not mount.uri


def _tensorboard(extras: JsonObject, board: TensorBoard | None) -> None:
    """The plugin of that name, with its first directory."""
    every = plugins(extras)
    mine = next((each for each in every if each.get(keys.PLUGIN.key) == TENSORBOARD), None)
    if board is None or not board.enabled:
        every = [each for each in every if each is not mine]
    else:
        if mine is None:
            mine = {keys.PLUGIN.key: TENSORBOARD, "parameters": {}}
            every = [*every, mine]
        parameters = dict(as_object(mine.get("parameters")))
        places = as_object(parameters.get(keys.LOG_DIRECTORIES.key))
        _set(
            parameters,
            keys.LOG_DIRECTORIES.key,
            {next(iter(places), _LOGS): board.log_path} if board.log_path else {},
        )
        mine["parameters"] = parameters
    _set(extras, keys.PLUGINS.key, every)


def _ours(
    job: JsonObject, extras: JsonObject, there: JobSpec | None, spec: JobSpec, names: Mapping[str, str]
) -> None:
    """What stands there in protocol v1's names; all else is said in the JobSpec's, by `document`."""
    ours = dict(as_object(extras.get(keys.OURS)))
    _keep(ours, keys.OUR_RETRY.key, _below_zero(spec.retry))
    parameters = as_object(job.get(keys.PARAMETERS.key))
    kept = (
        0
        if parameters.get(keys.DEBUG_PARAMETER) and spec.keep_failed_s == KEEP_FAILED_S
        else spec.keep_failed_s
    )
    _keep(ours, keys.OUR_KEEP.key, kept)
    _keep(ours, keys.OUR_AUTH_FILE.key, spec.registry_auth.file_uri if spec.registry_auth else "")
    roles = dict(as_object(ours.get(keys.OUR_ROLES.key)))
    written = as_object(job.get(keys.TASK_ROLES.key))
    for role in spec.roles:
        name = names[role.name]
        said = dict(as_object(roles.get(name)))
        begin = {label: port.begin_at for label, port in labelled(role).items() if port.begin_at}
        given = as_object(as_object(written.get(name)).get(keys.RESOURCES.key))
        _keep(said, keys.OUR_BEGIN.key, begin)
        _keep(said, keys.OUR_DISK.key, 0 if keys.STORAGE_GB.key in given else role.resources.disk_mib)
        _set(roles, name, said)
    _set(ours, keys.OUR_ROLES.key, roles)
    _set(extras, keys.OURS, ours)


def _below_zero(retry: RetryPolicy) -> int:
    if retry.limit is not None:
        return 0
    return -2 if retry.on_success else -1


def _keep(where: JsonObject, key: str, value: object) -> None:
    """The member brought in line, where it is one."""
    if key in where:
        _set(where, key, value)


def _set(where: JsonObject, key: str, value: object) -> None:
    """The member, or nothing when there is nothing to say."""
    if value:
        where[key] = value
    else:
        where.pop(key, None)
