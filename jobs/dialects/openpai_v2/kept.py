"""What a v2 file says that has no neutral meaning: kept for OpenPAI by pointer, and told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from jobs.dialects.openpai_v2 import keys
from jobs.dialects.openpai_v2.extras import TEAMWISE, TENSORBOARD, as_object
from jobs.dialects.openpai_v2.part import Part
from jobs.dialects.spans import escape, split

Kept = tuple[str, object]

_UNDERSTOOD: Final = frozenset({keys.STORAGES.key, keys.OURS})
_UNDERSTOOD_PLUGINS: Final = frozenset({TENSORBOARD, TEAMWISE})
_OF_HIVED: Final = frozenset({"skuNum", keys.SKU_TYPE.key, *keys.SKU_TYPE.aliases})


def of(root: Part, unknown: Mapping[str, object]) -> Iterator[Kept]:
    """Everything kept of a file; what somebody might expect to count is noted."""
    for key, value in unknown.items():
        yield f"/{escape(key)}", value
    for rule in (keys.VERSION, keys.CONTRIBUTOR):
        if root.value.get(rule.key):
            yield root.at(rule.key), root.value[rule.key]
    yield from _of_roles(root)
    yield from _of_extras(root, root.part(keys.EXTRAS).value)


def _of_roles(root: Part) -> Iterator[Kept]:
    for _name, part in root.named(keys.TASK_ROLES):
        for key, value in part.value.items():
            if key not in part.table.by_name or (key == keys.TASK_RETRY_COUNT.key and value):
                yield part.at(key), value
        given = part.part(keys.RESOURCES)
        for key, value in given.value.items():
            if key not in given.table.by_name:
                yield given.at(key), value


def _of_extras(root: Part, extras: Mapping[str, object]) -> Iterator[Kept]:
    for key, value in extras.items():
        pointer = f"/{keys.EXTRAS.key}/{escape(key)}"
        if key == keys.PLUGINS.key and isinstance(value, list):
            for index, plugin in enumerate(value):
                if as_object(plugin).get(keys.PLUGIN.key) not in _UNDERSTOOD_PLUGINS:
                    yield _unused(root, f"{pointer}/{index}", plugin)
        elif key == keys.HIVED.key and isinstance(value, dict):
            yield from ((f"{pointer}{inner}", held) for inner, held in _of_hived(value))
        elif key not in _UNDERSTOOD:
            yield _unused(root, pointer, value)


def _of_hived(hived: Mapping[str, object]) -> Iterator[Kept]:
    """What HiveD is told beside priority and types of GPUs."""
    for key, value in hived.items():
        if key == keys.HIVED_ROLES.key and isinstance(value, dict):
            for role, said in value.items():
                for name, inner in as_object(said).items():
                    if name not in _OF_HIVED and inner:
                        yield f"/{key}/{escape(role)}/{escape(name)}", inner
        elif key != keys.PRIORITY_CLASS.key:
            yield f"/{escape(key)}", value


def _unused(root: Part, pointer: str, value: object) -> Kept:
    """Note what is kept by a plugin's name, else by its key."""
    name = as_object(value).get(keys.PLUGIN.key)
    shown = name if isinstance(name, str) else split(pointer)[-1]
    root.findings.note("kept_unused", pointer, key=shown)
    return pointer, value
