"""Our object in a text, kept among a dialect's extras, and the object as it is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.dialects.ours.keys import NAME
from jobs.dialects.ours.overlay import add_unknown_members, find_patch, find_redundant_paths
from jobs.dialects.ours.parser import Object, ObjectContent
from jobs.spec import JobSpec

KEPT: Final = NAME
"""The entry of a dialect's extras, with these members:"""

_BESIDE: Final = "beside"
_STRANGERS: Final = "strangers"
_NAMES: Final = "names"


def make_extras(
    said: ObjectContent, native: JobSpec, spec: JobSpec, named: Mapping[str, str]
) -> dict[str, object]:
    """Return the extras of a text whose object says `said`; `native` is what the rest is written as.

    `named` are the names that roles have in the rest of the text, where they would get other ones.
    """
    kept: Object = {
        _BESIDE: find_redundant_paths(said.patch, native, spec),
        _STRANGERS: said.strangers,
        _NAMES: dict(named),
    }
    kept = {name: value for name, value in kept.items() if value}
    return {KEPT: kept} if kept else {}


def read_role_names(extras: Mapping[str, object]) -> Mapping[str, str]:
    """Return the name that a role has in the rest of the text, by its own."""
    found = _member(extras, _NAMES)
    return {str(name): str(other) for name, other in found.items()} if isinstance(found, dict) else {}


def render_object(native: JobSpec | None, spec: JobSpec, extras: Mapping[str, object]) -> Object:
    """Our object beside a text that says `native`, so that both say `spec`; empty when nothing is missing."""
    said, strangers = _member(extras, _BESIDE), _member(extras, _STRANGERS)
    if native is None or len(native.roles) != len(spec.roles):
        return {}
    paths = [[str(token) for token in path] for path in said] if isinstance(said, list) else []
    found = find_patch(native, spec, paths)
    roles = [role.name for role in native.roles]
    return add_unknown_members(found, strangers if isinstance(strangers, dict) else {}, roles)


def _member(extras: Mapping[str, object], name: str) -> object:
    kept = extras.get(KEPT)
    return kept.get(name) if isinstance(kept, dict) else None
