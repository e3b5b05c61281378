"""What the rows of the dialects' tables are about."""

from __future__ import annotations

from console.documentation.reference.dialect_fields import list_parents, remove_purposes
from console.documentation.reference.spec_paths import list_paths
from jobs import dialects
from jobs.dialects.field_map import FieldRow


def misplaced() -> tuple[str, ...]:
    """Paths that a dialect's table names although a JobSpec has none like them."""
    known = {part for path, _default in list_paths() for part in list_parents(path)}
    return tuple(
        f"{name}: {row.spelling} → {row.path}"
        for name in dialects.NAMES
        for row in dialects.fields(name)
        if row.path and remove_purposes(row.path) not in known
    )


def is_about(row: FieldRow, path: str) -> bool:
    """Whether a key fills `path`, or something around or inside of it."""
    said = remove_purposes(row.path)
    by_purpose = said != row.path and path == "mounts[].purpose"
    return by_purpose or said in list_parents(path) or path in list_parents(said)
