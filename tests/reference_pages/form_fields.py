"""The page of the form's fields: what PAI-DLC's two pages on making a job have, and where the form has it."""

from __future__ import annotations

import csv
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from console.documentation.reference.table import code, table

INTRODUCTION: Final = """\
# The fields of PAI-DLC's pages

Every field, option, limit and warning of PAI-DLC's two pages on making a job: the older, Chinese one and the
newer, Japanese one. The form of a new job has the union of both.

- **page**: which of the two says it
- **field**: the form's field, by the name that it is posted under (`*` is a role's number; `place` is *Where
  it runs*, with each quota's resource type, source and region)
- **rule**: what hides, closes or bounds the field, or warns beside it; the same rules are told as notes of a
  job that goes to PAI-DLC, when it is submitted
- **test**: below `tests/`
"""
_HEAD: Final = ("page", "what it says", "field", "rule", "test")


class Row(NamedTuple):
    """A line of the vendor's pages; `field`, `rule` and `test` say where this console has it."""

    section: str
    page: str
    says: str
    field: str
    rule: str
    test: str


def read_rows() -> tuple[Row, ...]:
    """Return the rows in the order of the vendor's pages."""
    with Path(__file__).with_name("form_fields.csv").open(encoding="utf-8", newline="") as file:
        _header, *lines = csv.reader(file)
    return tuple(Row(*line) for line in lines)


def page() -> str:
    """Return the whole page."""
    parts = (
        f"## {section}\n\n{table(_HEAD, map(_cells, found))}"
        for section, found in groupby(read_rows(), key=lambda row: row.section)
    )
    return f"{INTRODUCTION}\n" + "\n".join(parts)


def _cells(row: Row) -> tuple[str, ...]:
    return row.page, row.says, code(row.field), code(row.rule), code(row.test)
