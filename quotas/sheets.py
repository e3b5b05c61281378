"""Tables for spreadsheets: what a cell may begin with."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Final

FORMULA: Final = re.compile(r"^\s*[=+\-@\t\r]")
_NUMBER: Final = re.compile(r"^-?\d+(\.\d+)?$")


def safe_cell(text: str) -> str:
    """The text, with an apostrophe before what a spreadsheet would take for a formula; numbers stay."""
    return f"'{text}" if FORMULA.match(text) and not _NUMBER.match(text) else text


def plain_cell(text: str) -> str:
    """The inverse of `safe_cell`: what is read in again is what was written out."""
    return text[1:] if text.startswith("'") and FORMULA.match(text[1:]) else text


def lines(rows: Iterable[Sequence[object]]) -> bytes:
    """Rows as CSV, every cell safe."""
    text = io.StringIO()
    csv.writer(text).writerows([safe_cell(str(cell)) for cell in row] for row in rows)
    return text.getvalue().encode()
