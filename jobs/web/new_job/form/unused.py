"""Fields without effect on the chosen cluster: taken out of the sections and folded under one heading."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from jobs.form.fields import Words
from jobs.web.new_job.form.fields import FieldGroup, FormField, FormRows, RoleBlock, merge_support

_Part = TypeVar("_Part", FormField, FormRows)


@dataclass(frozen=True, slots=True)
class UnusedFields:
    """The fields without effect, in the groups that they belong to."""

    groups: tuple[FieldGroup, ...]

    @property
    def total(self) -> int:
        """The number of fields and lists."""
        return sum(len(group.fields) + len(group.rows) for group in self.groups)

    @property
    def count(self) -> int:
        """The number of fields that differ from their defaults."""
        return sum(group.count for group in self.groups)

    @property
    def wrong(self) -> bool:
        """Tell whether one of the fields has a problem or a violation."""
        return any(group.wrong for group in self.groups)


def find_unused(label: Words, model: Mapping[str, Any]) -> Iterator[FieldGroup]:
    """Yield the groups of a section's fields without effect; `label` is the section's."""
    yield from _only_unused(FieldGroup("section", label, model.get("fields", ())))
    for group in model.get("groups", ()):
        yield from _only_unused(group)
    for block in model.get("blocks", ()):
        for group in (FieldGroup(f"block-{block.role}", label, block.fields, block.rows), *block.groups):
            heading = f"{block.title}: {group.label}" if block.title else group.label
            yield from _only_unused(replace(group, label=heading))


def drop_unused(model: Mapping[str, Any]) -> dict[str, Any]:
    """Return the section's context without the fields that have no effect."""
    changed = dict(model)
    if "fields" in model:
        changed["fields"] = _only_used(model["fields"])
    if "groups" in model:
        changed["groups"] = _drop_from_groups(model["groups"])
    if "blocks" in model:
        changed["blocks"] = tuple(_drop_from_block(block) for block in model["blocks"])
    return changed


def _only_unused(group: FieldGroup) -> Iterator[FieldGroup]:
    fields = tuple(each for each in group.fields if each.unused)
    rows = tuple(each for each in group.rows if each.unused)
    if fields or rows:
        found = FieldGroup(group.id, group.label, fields, rows, support=group.support)
        yield found if group.support else merge_support(found)


def _only_used(parts: Iterable[_Part]) -> tuple[_Part, ...]:
    return tuple(each for each in parts if not each.unused)


def _drop_from_groups(groups: Iterable[FieldGroup]) -> tuple[FieldGroup, ...]:
    left = (replace(group, fields=_only_used(group.fields), rows=_only_used(group.rows)) for group in groups)
    return tuple(group for group in left if group.fields or group.rows or group.template)


def _drop_from_block(block: RoleBlock) -> RoleBlock:
    return replace(
        block,
        fields=_only_used(block.fields),
        rows=_only_used(block.rows),
        groups=_drop_from_groups(block.groups),
    )
