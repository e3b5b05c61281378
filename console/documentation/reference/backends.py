"""The page of backends: what becomes of each path of a JobSpec on each backend."""

from __future__ import annotations

from collections.abc import Iterator

from console.documentation.reference.spec_paths import list_paths
from console.documentation.reference.table import cell, code, table
from jobs.backends import registry
from jobs.backends.support import Fate, find_support

INTRODUCTION = """\
# What a backend does with a job

For each field of a job, what becomes of it on each backend. The form of a new job says the same beside its
fields; page, API and command line note each field of a file that has no effect there.

- **honoured**: the job has it; the test looks from inside a running job, or at what became of it
- **console**: the console sees to it, whatever the backend
- *approximated*: something near to it
- *refused*: a job that asks for it is not taken
- kept: it stays in the file, for export, and nothing is done with it here
"""

_SHOWN = {
    Fate.HONOURED: "**honoured**",
    Fate.CONSOLE: "**console**",
    Fate.APPROXIMATED: "*approximated*",
    Fate.REFUSED: "*refused*",
    Fate.KEPT: "kept",
}


def page() -> str:
    """Return the whole page."""
    heads = ("field", "there", "more", "test")
    parts = (f"## {name}\n\n{table(heads, _rows(name))}" for name in registry.names())
    return f"{INTRODUCTION}\n" + "\n".join(parts)


def _rows(backend: str) -> Iterator[tuple[str, ...]]:
    support = registry.find(backend).support
    for path, _default in list_paths():
        found = find_support(support, path)
        if found is not None:
            yield (
                code(path),
                _SHOWN[found.fate],
                cell(found.why),
                code(f"tests/{found.test}") if found.test else "",
            )
