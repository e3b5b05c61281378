"""`python -m tests.reference_pages [FOLDER]` writes the reference; it fails where a row lacks its text."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from console.home import CHECKOUT
from tests.reference_pages import backends, cluster_settings, conversions, fields, form_fields, settings
from tests.reference_pages.table import rows

FOLDER: Final = CHECKOUT / "var" / "docs"


@dataclass(frozen=True, slots=True)
class Page:
    """A page, and the columns of its tables that must not be empty in any row."""

    text: str
    required: frozenset[str]


def build() -> Mapping[str, Page]:
    """Return every page by its file name."""
    return {
        "settings.md": Page(settings.page(), frozenset({"variable", "meaning", "value", "default"})),
        "dialect-fields.md": Page(fields.page(), frozenset({"dialect", "spelling", "source"})),
        "conversions.md": Page(conversions.page(), frozenset({"JobSpec", "from \\ to"})),
        "cluster-settings.md": Page(cluster_settings.page(), frozenset({"setting", "label", "meaning"})),
        "backend-fields.md": Page(backends.page(), frozenset({"field", "there"})),
        "form-fields.md": Page(form_fields.page(), frozenset({"page", "what it says", "field", "test"})),
    }


def find_gaps(pages: Mapping[str, Page]) -> Iterator[str]:
    """Yield a sentence for each row that lacks a text, and for each page without rows."""
    for name, page in pages.items():
        found = list(rows(page.text))
        if not found:
            yield f"{name} has no rows."
        for row in found:
            for column in sorted(page.required & row.keys()):
                if not row[column]:
                    yield f"{name}: no {column} in {' | '.join(row.values())}"


def main() -> int:
    """Write the pages, and return 1 when a row lacks its text."""
    parser = argparse.ArgumentParser(prog="python -m tests.reference_pages", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    folder: Path = parser.parse_args().folder
    pages = build()
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in pages.items():
        (folder / name).write_text(page.text, encoding="utf-8")
    print(f"{len(pages)} pages in {folder}")
    gaps = list(find_gaps(pages))
    for gap in gaps:
        print(gap)
    return int(bool(gaps))


if __name__ == "__main__":
    sys.exit(main())
