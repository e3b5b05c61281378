"""What `extras` says that other systems know too; OpenPAI accepts anything there, and so does this."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from jobs.dialects.openpai_v2 import keys
from jobs.dialects.record import as_number
from jobs.spec import Mount, TensorBoard

TENSORBOARD: Final = "tensorboard"
TEAMWISE: Final = "teamwise_storage"

_MOST_PORT: Final = 65_535


@dataclass(slots=True)
class Extras:
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


def read(value: object) -> Extras:
    """What is understood of `extras`."""
    extras = as_object(value)
    hived = as_object(extras.get(keys.HIVED.key))
    ours = as_object(extras.get(keys.OURS))
    priority = keys.PRIORITY_CLASS.meanings.get(str(hived.get(keys.PRIORITY_CLASS.key)))
    found = Extras(
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
    """The keys under which a role of HiveD's names its type of GPU, of those that say something."""
    names = (keys.SKU_TYPE.key, *keys.SKU_TYPE.aliases)
    return [name for name in names if _text(as_object(said).get(name))]


def plugins(extras: Mapping[str, object]) -> list[dict[str, object]]:
    """The runtime plugins."""
    return [each for each in as_list(extras.get(keys.PLUGINS.key)) if isinstance(each, dict)]


def as_object(value: object) -> dict[str, object]:
    """`value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[object]:
    """`value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def _storages(extras: Mapping[str, object]) -> tuple[Mount, ...]:
    """Every storage once."""
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
    """A whole number within its bounds, else 0."""
    number = as_number(value)
    return int(number) if number is not None and number == int(number) and least <= number <= most else 0
