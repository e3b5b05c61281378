"""The page of the dialects' fields: which key of which dialect fills which path of a JobSpec."""

from __future__ import annotations

import re
from collections.abc import Iterator

from console.documentation.reference.spec_paths import list_paths
from console.documentation.reference.table import cell, code, table
from jobs import dialects
from jobs.dialects.field_map import FieldRow

INTRODUCTION = """\
# The field map

Every key of every dialect: which path of a JobSpec it fills, how it is spelled (`/` leads into an object,
`[]` into the elements of a list), its unit, what counts when it is left out, and its limits, each with whose
limit it is. JobSpec's own units are milli-CPU, MiB, seconds and, of money, millionths; behind each path
stands its default. `secret_env` is said where `env` is, by a placeholder `$SECRET:name` for the value.
"""

_PURPOSE = re.compile(r"\[[a-z]+\]")

HEAD = ("JobSpec", "dialect", "spelling", "unit", "default", "limits", "source")
KEPT_HEAD = ("spelling", "limits", "source")


def page() -> str:
    """Return the whole page."""
    kept = "\n".join(_list_kept_keys(name) for name in dialects.NAMES)
    return f"{INTRODUCTION}\n## What fills a JobSpec\n\n{table(HEAD, _rows())}\n{kept}"


def remove_purposes(path: str) -> str:
    """Return a path without the purposes of mounts: `mounts[data].uri` is one of `mounts[].uri`."""
    return _PURPOSE.sub("[]", path)


def list_parents(path: str) -> list[str]:
    """Return a path and all that lie around it: `roles[].env`, `roles[]`, `roles`."""
    names = path.split(".")
    around = [".".join(names[: count + 1]) for count in range(len(names))]
    return [*around, *(part.removesuffix("[]") for part in around)]


def _rows() -> Iterator[tuple[str, ...]]:
    defaults = dict(list_paths())
    order = {part: index for index, path in reversed([*enumerate(defaults)]) for part in list_parents(path)}
    found = [(row, name) for name in dialects.NAMES for row in dialects.fields(name) if row.path]
    found.sort(key=lambda pair: (order.get(remove_purposes(pair[0].path), -1), pair[0].path))
    last = ""
    for row, name in found:
        yield (
            "" if row.path == last else _path(row.path, defaults.get(row.path)),
            name,
            _list_spellings(row),
            cell(row.unit),
            code(row.default),
            cell("; ".join(row.limits)),
            row.source,
        )
        last = row.path


def _path(path: str, default: object) -> str:
    return code(path) if default in (None, "", (), {}) else f"{code(path)} ({code(_format_default(default))})"


def _format_default(default: object) -> str:
    return str(default).lower() if isinstance(default, bool) else str(default)


def _list_spellings(row: FieldRow) -> str:
    return ", ".join(code(each) for each in (row.spelling, *row.aliases))


def _list_kept_keys(name: str) -> str:
    rows = [
        (_list_spellings(row), cell("; ".join(row.limits)), row.source)
        for row in dialects.fields(name)
        if not row.path
    ]
    if not rows:
        return ""
    head = f"\n## Kept for {name} alone\n\nNot part of a JobSpec: given back on export, never executed.\n"
    return f"{head}\n{table(KEPT_HEAD, rows)}"
