"""The page of backends: what becomes of each path of a JobSpec on each backend."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.form.applied import BACKENDS, Applied, Fate, applied
from jobs.messages.applied import WHY
from tests.reference_pages.paths import paths
from tests.reference_pages.table import cell, code, table

INTRODUCTION = """\
# What a backend does with a job

For each field of a job, what becomes of it on each backend. The form of a new job says the same beside its
fields.

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
    """The whole page."""
    parts = (f"## {name}\n\n{table(('field', 'there', 'more', 'test'), _rows(name))}" for name in BACKENDS)
    return f"{INTRODUCTION}\n" + "\n".join(parts)


def _rows(backend: str) -> Iterator[tuple[str, ...]]:
    for path, _default in paths():
        found = applied(backend, path)
        if found is not None:
            yield code(path), _SHOWN[found.fate], cell(_why(found)), code(found.test) if found.test else ""


def _why(found: Applied) -> str:
    return WHY[found.why] if found.why else ""
