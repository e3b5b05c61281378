"""Notebooks (Jupyter's format, version 4) as text to look at: sources and outputs, nothing that acts.

https://nbformat.readthedocs.io/en/latest/format_description.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from jobs.access.folders.text import harmless

SUFFIX: Final = ".ipynb"
LARGEST: Final = 4 << 20
MOST_CELLS: Final = 500
LONGEST_OUTPUT: Final = 20_000
"""Characters of one output."""

_KINDS: Final = frozenset({"code", "markdown", "raw"})


@dataclass(frozen=True, slots=True)
class NotebookCell:
    """A cell: its kind, its number among those that were run (None for others), its source, its outputs.

    `pictures` counts outputs that are no text.
    """

    kind: str
    number: int | None
    source: str
    output: str
    pictures: int


@dataclass(frozen=True, slots=True)
class Notebook:
    """The first cells, and how many there are."""

    cells: list[NotebookCell]
    total: int


def parse(data: bytes) -> Notebook | None:
    """Return the notebook that a file holds; None where it holds none of version 4."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    cells = found.get("cells") if isinstance(found, Mapping) else None
    if not isinstance(cells, list):
        return None
    known = [each for each in cells if isinstance(each, Mapping) and str(each.get("cell_type")) in _KINDS]
    return Notebook([_parse_cell(each) for each in known[:MOST_CELLS]], len(known))


def _parse_cell(cell: Mapping[str, Any]) -> NotebookCell:
    outputs = cell.get("outputs")
    known = [each for each in outputs if isinstance(each, Mapping)] if isinstance(outputs, list) else []
    texts = [list(_output_texts(each)) for each in known]
    number = cell.get("execution_count")
    return NotebookCell(
        kind=cell["cell_type"],
        number=number if isinstance(number, int) else None,
        source=harmless(_join(cell.get("source"))),
        output="\n".join(harmless(text[:LONGEST_OUTPUT]).rstrip("\n") for each in texts for text in each),
        pictures=sum(not each for each in texts),
    )


def _output_texts(output: Mapping[str, Any]) -> Iterator[str]:
    """Yield what an output says as plain text, in whichever of its forms that is."""
    data = output.get("data")
    plain = data.get("text/plain") if isinstance(data, Mapping) else None
    has_picture = isinstance(data, Mapping) and any(str(kind).startswith("image/") for kind in data)
    for text in (output.get("text"), output.get("traceback"), None if has_picture else plain):
        if text:
            yield _join(text, "\n" if text is output.get("traceback") else "")


def _join(lines: object, between: str = "") -> str:
    """Return a text that may be a list of its lines."""
    return between.join(map(str, lines)) if isinstance(lines, list) else str(lines or "")
