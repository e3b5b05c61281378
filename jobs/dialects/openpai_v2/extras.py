"""Parts of `extras` that other systems know too ↔ fields of a JobSpec; OpenPAI accepts anything there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from jobs.dialects.objects import as_list, as_object, free_name
from jobs.dialects.openpai_v1.keys import KEEP_FAILED_S
from jobs.dialects.openpai_v1.renderer import retry_count
from jobs.dialects.openpai_v2 import keys
from jobs.dialects.record import as_number
from jobs.dialects.text_renderer import JsonObject
from jobs.spec import JobSpec, Mount, Port, RoleSpec, TensorBoard

TENSORBOARD: Final = "tensorboard"
TEAMWISE: Final = "teamwise_storage"

_MOST_PORT: Final = 65_535


@dataclass(slots=True)
class KnownExtras:
    """The neutral part of `extras`, by role where it is about one."""

    priority: int | None = None
    gpu_types: dict[str, str] = field(default_factory=dict)
    storages: tuple[Mount, ...] = ()
    tensorboard: TensorBoard | None = None
    retry: int = 0
    keep_failed_s: int = 0
    auth_file: str = ""
    begin_at: dict[str, dict[str, int]] = field(default_factory=dict)
    disk_mib: dict[str, int] = field(default_factory=dict)


def read(value: object) -> KnownExtras:
    """Return what is understood of `extras`."""
    extras = as_object(value)
    hived = as_object(extras.get(keys.HIVED.key))
    ours = as_object(extras.get(keys.OURS))
    priority = keys.PRIORITY_CLASS.meanings.get(str(hived.get(keys.PRIORITY_CLASS.key)))
    found = KnownExtras(
        priority=int(priority) if priority else None,
        storages=_storages(extras),
        tensorboard=_tensorboard(extras),
        retry=_whole(ours.get(keys.OUR_RETRY.key), -2, -1),
        keep_failed_s=_whole(ours.get(keys.OUR_KEEP.key), 0, 10**9),
        auth_file=_text(ours.get(keys.OUR_AUTH_FILE.key)),
    )
    for role, said in as_object(hived.get(keys.HIVED_ROLES.key)).items():
        found.gpu_types[role] = next((_text(as_object(said).get(key)) for key in sku_keys(said)), "")
    for role, said in as_object(ours.get(keys.OUR_ROLES.key)).items():
        begin = as_object(as_object(said).get(keys.OUR_BEGIN.key))
        found.begin_at[role] = {label: _whole(first, 0, _MOST_PORT) for label, first in begin.items()}
        found.disk_mib[role] = _whole(as_object(said).get(keys.OUR_DISK.key), 0, 2**40)
    return found


def sku_keys(said: object) -> list[str]:
    """Return the keys under which a role of HiveD's names its type of GPU, of those that say something."""
    names = (keys.SKU_TYPE.key, *keys.SKU_TYPE.aliases)
    return [name for name in names if _text(as_object(said).get(name))]


def plugins(extras: Mapping[str, object]) -> list[dict[str, object]]:
    """Return the runtime plugins."""
    return [each for each in as_list(extras.get(keys.PLUGINS.key)) if isinstance(each, dict)]


def _storages(extras: Mapping[str, object]) -> tuple[Mount, ...]:
    """Return every storage once."""
    named = {(mount.id, mount.path): mount for mount in _every_storage(extras)}
    return tuple(named.values())


def _every_storage(extras: Mapping[str, object]) -> Iterator[Mount]:
    for each in as_list(extras.get(keys.STORAGES.key)):
        name = _text(as_object(each).get(keys.STORAGE_NAME.key))
        if name:
            yield Mount(id=name, path=_text(as_object(each).get(keys.STORAGE_PATH.key)))
    for plugin in plugins(extras):
        if plugin.get(keys.PLUGIN.key) == TEAMWISE:
            names = as_list(as_object(plugin.get("parameters")).get(keys.STORAGE_NAMES.key))
            yield from (Mount(id=name) for name in names if isinstance(name, str) and name)


def _tensorboard(extras: Mapping[str, object]) -> TensorBoard | None:
    for plugin in plugins(extras):
        if plugin.get(keys.PLUGIN.key) == TENSORBOARD:
            places = as_object(plugin.get("parameters")).get(keys.LOG_DIRECTORIES.key)
            named = list(places.values()) if isinstance(places, dict) else [places]
            return TensorBoard(log_path=next((each for each in named if isinstance(each, str)), ""))
    return None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _whole(value: object, least: int, most: int) -> int:
    """Return a whole number within its bounds, else 0."""
    number = as_number(value)
    return int(number) if number is not None and number == int(number) and least <= number <= most else 0


# --- writing ---------------------------------------------------------------------------------------------


_LOGS: Final = "logs"


def write_extras(job: JsonObject, there: JobSpec | None, spec: JobSpec, names: Mapping[str, str]) -> None:
    """Bring `extras` in line with `spec`."""
    extras = dict(as_object(job.get(keys.EXTRAS.key)))
    _write_hived(extras, there, spec, names)
    _write_storages(extras, there, spec)
    if spec.tensorboard != (there and there.tensorboard):
        _write_tensorboard(extras, spec.tensorboard)
    _write_ours(job, extras, there, spec, names)
    if extras or keys.EXTRAS.key in job:
        job[keys.EXTRAS.key] = extras


def _write_hived(extras: JsonObject, there: JobSpec | None, spec: JobSpec, names: Mapping[str, str]) -> None:
    """Write priority and types of GPUs, as the HiveD scheduler reads them."""
    hived = dict(as_object(extras.get(keys.HIVED.key)))
    if spec.priority != (there and there.priority):
        set_member(hived, keys.PRIORITY_CLASS.key, _priority_class(spec.priority))
    before = {role.name: role.resources.gpu_type for role in there.roles} if there else {}
    roles = dict(as_object(hived.get(keys.HIVED_ROLES.key)))
    for role in spec.roles:
        name, wanted = names[role.name], role.resources.gpu_type
        if wanted == before.get(role.name, ""):
            continue
        said = dict(as_object(roles.get(name)))
        used = (sku_keys(said) or [keys.SKU_TYPE.key])[0]
        set_member(said, used, wanted)
        if wanted and role.resources.gpus and len(said) == 1:
            said["skuNum"] = role.resources.gpus
        set_member(roles, name, said)
    set_member(hived, keys.HIVED_ROLES.key, roles)
    set_member(extras, keys.HIVED.key, hived)


def _priority_class(priority: int | None) -> str:
    """Return the class of a priority: 8 and 9 are crit, 6 and 7 prod, 3 to 5 test, 1 and 2 oppo."""
    if priority is None:
        return ""
    return next(
        word for least, word in ((8, "crit"), (6, "prod"), (3, "test"), (1, "oppo")) if priority >= least
    )


def _write_storages(extras: JsonObject, there: JobSpec | None, spec: JobSpec) -> None:
    """Write storages that the target knows by name; where they are said anew, all are said in one way."""
    wanted = [mount for mount in spec.mounts if _is_storage(mount)]
    if there is not None and [mount for mount in there.mounts if _is_storage(mount)] == wanted:
        return
    rest = [each for each in plugins(extras) if each.get(keys.PLUGIN.key) != TEAMWISE]
    if len(rest) < len(plugins(extras)):
        set_member(extras, keys.PLUGINS.key, rest)
    said = [
        {keys.STORAGE_NAME.key: mount.id, **({keys.STORAGE_PATH.key: mount.path} if mount.path else {})}
        for mount in wanted
    ]
    set_member(extras, keys.STORAGES.key, said)


def _is_storage(mount: Mount) -> bool:
    return bool(mount.id) and not mount.uri


def _write_tensorboard(extras: JsonObject, board: TensorBoard | None) -> None:
    """Write the plugin of that name, with its first directory."""
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
        set_member(
            parameters,
            keys.LOG_DIRECTORIES.key,
            {next(iter(places), _LOGS): board.log_path} if board.log_path else {},
        )
        mine["parameters"] = parameters
    set_member(extras, keys.PLUGINS.key, every)


def _write_ours(
    job: JsonObject, extras: JsonObject, there: JobSpec | None, spec: JobSpec, names: Mapping[str, str]
) -> None:
    """Bring protocol v1's names in line; all else is said in the JobSpec's, by `renderer`."""
    ours = dict(as_object(extras.get(keys.OURS)))
    _update(ours, keys.OUR_RETRY.key, min(retry_count(spec.retry), 0))
    parameters = as_object(job.get(keys.PARAMETERS.key))
    kept = (
        0
        if parameters.get(keys.DEBUG_PARAMETER) and spec.keep_failed_s == KEEP_FAILED_S
        else spec.keep_failed_s
    )
    _update(ours, keys.OUR_KEEP.key, kept)
    _update(ours, keys.OUR_AUTH_FILE.key, spec.registry_auth.file_uri if spec.registry_auth else "")
    roles = dict(as_object(ours.get(keys.OUR_ROLES.key)))
    written = as_object(job.get(keys.TASK_ROLES.key))
    for role in spec.roles:
        name = names[role.name]
        said = dict(as_object(roles.get(name)))
        begin = {label: port.begin_at for label, port in label_ports(role).items() if port.begin_at}
        given = as_object(as_object(written.get(name)).get(keys.RESOURCES.key))
        _update(said, keys.OUR_BEGIN.key, begin)
        _update(said, keys.OUR_DISK.key, 0 if keys.STORAGE_GB.key in given else role.resources.disk_mib)
        set_member(roles, name, said)
    set_member(ours, keys.OUR_ROLES.key, roles)
    set_member(extras, keys.OURS, ours)


def label_ports(role: RoleSpec) -> dict[str, Port]:
    """Return the role's ports under labels that v2 allows, each its own."""
    ports: dict[str, Port] = {}
    for port in role.ports:
        label = port.label if keys.PORTS.fits(port.label) else keys.PORTS.propose(port.label)
        ports[free_name(label, ports)] = port
    return ports


def _update(where: JsonObject, key: str, value: object) -> None:
    """Bring a member in line, where there is one."""
    if key in where:
        set_member(where, key, value)


def set_member(where: JsonObject, key: str, value: object) -> None:
    """Set the member, or remove it when there is nothing to say."""
    if value:
        where[key] = value
    else:
        where.pop(key, None)
