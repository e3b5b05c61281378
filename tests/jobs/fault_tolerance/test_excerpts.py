"""The catalogue on excerpts of real programs' output: each has its public source and the expected cause.

`held_out.json` was collected with `development.json`, before the patterns were widened, and is not used to
write them.  The figures stand in `docs/fault-tolerance.md`; they may rise, with the page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from jobs.fault_tolerance.error_catalogue import find_error

EXCERPTS: Final = Path(__file__).parent / "excerpts"
PAGE: Final = Path(__file__).parents[3] / "docs" / "fault-tolerance.md"


def load(part: str) -> Sequence[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = json.loads((EXCERPTS / f"{part}.json").read_text(encoding="utf-8"))
    return rows


def measure(rows: Iterable[Mapping[str, Any]]) -> tuple[int, float, float]:
    """Return the number of excerpts, and precision and recall of the named causes."""
    count = named = right = caused = 0
    for row in rows:
        found = find_error(row["lines"])
        verdict = (found.code, found.origin) if found else (None, None)
        is_right = verdict == (row["code"], row["origin"])
        count += 1
        named += found is not None
        caused += row["code"] is not None
        right += is_right and found is not None
    return count, right / named, right / caused


@pytest.mark.parametrize(("part", "label"), [("development", "written for"), ("held_out", "held out")])
def test_precision_and_recall_are_those_of_the_page(part: str, label: str) -> None:
    count, precision, recall = measure(load(part))
    figures = rf"\| {label} \| (\d+) \| ([\d.]+) % \| ([\d.]+) % \|"
    stated = re.search(figures, PAGE.read_text(encoding="utf-8"))
    assert stated is not None
    assert stated.groups() == (str(count), f"{100 * precision:.1f}", f"{100 * recall:.1f}")


def test_excerpts_are_short_and_have_public_sources() -> None:
    rows = [*load("development"), *load("held_out")]
    assert len(rows) >= 120
    assert len(load("held_out")) >= 60
    for row in rows:
        assert 1 <= len(row["lines"]) <= 5
        assert re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+", row["source"])
    sources = {part: {row["source"] for row in load(part)} for part in ("development", "held_out")}
    assert not sources["development"] & sources["held_out"]
