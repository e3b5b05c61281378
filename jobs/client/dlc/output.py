"""Tables and JSON, as the vendor's program prints them."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any


def write(text: str) -> None:
    """Write a text with its line break, at once: others may follow it through a pipe."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def write_json(value: Any) -> None:
    """Write JSON, indented by three spaces."""
    write(json.dumps(value, ensure_ascii=False, indent=3))


def write_box(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table with lines around its cells."""
    table = [[_text(cell) for cell in row] for row in rows]
    widths = _widths([list(header), *table])
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    middle = "|".join(f" {cell:^{width}} " for cell, width in zip(header, widths, strict=True))
    lines = [
        "|" + "|".join(f" {_pad(cell, width)} " for cell, width in _cells(row, widths)) + "|" for row in table
    ]
    write("\n".join([rule, f"|{middle}|", rule, *lines, rule]))


def write_columns(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table in columns without lines, each cell one word, so that scripts can split it."""
    table = [list(header), *([_word(_text(cell)) for cell in row] for row in rows)]
    widths = _widths(table)
    write(
        "\n".join(
            "  ".join(_pad(cell, width) for cell, width in _cells(row, widths)).rstrip() for row in table
        )
    )


def _cells(row: Sequence[str], widths: Sequence[int]) -> Iterable[tuple[str, int]]:
    return zip(row, widths, strict=True)


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _word(text: str) -> str:
    return "_".join(text.split()) or "-"


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(_width, column)) for column in zip(*rows, strict=True)]


def _width(text: str) -> int:
    """Return the columns of a terminal that a text takes; Chinese characters take two."""
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)


def _pad(text: str, width: int) -> str:
    return text + " " * (width - _width(text))
