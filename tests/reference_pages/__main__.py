"""`python -m tests.reference_pages [--check] [FOLDER]` writes the reference; a row without its text fails,
and so does a field that one format loses on the way to another one that has it.

The pages of `COMMITTED` are in `docs/` too; with `--check` they are compared and not written.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import django

from console.home import CHECKOUT
from jobs.backends import registry
from tests.reference_pages import (
    backends,
    cluster_settings,
    conversions,
    engines,
    fault_arguments,
    fields,
    form_fields,
    settings,
    survival,
)
from tests.reference_pages.table import rows

FOLDER: Final = CHECKOUT / "var" / "docs"
DOCS: Final = CHECKOUT / "docs"
COMMITTED: Final = ("backends-fields.md", "compatible-apis.md", "fault-arguments.md")


@dataclass(frozen=True, slots=True)
class Page:
    """A page, and the columns of its tables that must not be empty in any row."""

    text: str
    required: frozenset[str]


def build() -> Mapping[str, Page]:
    """Return every page by its file name; Django has to be set up."""
    from tests.reference_pages import compatible_apis  # noqa: PLC0415 its tables import models

    return {
        "settings.md": Page(settings.page(), frozenset({"variable", "meaning", "value", "default"})),
        "dialect-fields.md": Page(fields.page(), frozenset({"dialect", "spelling", "source"})),
        "conversions.md": Page(conversions.page(), frozenset({"JobSpec", "from \\ to"})),
        "cluster-settings.md": Page(cluster_settings.page(), frozenset({"setting", "label", "meaning"})),
        "backends.md": Page(engines.page(), frozenset({"promise", "ability", "field", *registry.names()})),
        "backends-fields.md": Page(backends.page(), frozenset({"field", "there"})),
        "compatible-apis.md": Page(
            compatible_apis.page(), frozenset({"operation", "request", "scope", "field", "support"})
        ),
        "fault-arguments.md": Page(fault_arguments.page(), frozenset(fault_arguments.HEAD)),
        "form-fields.md": Page(form_fields.page(), frozenset({"page", "what it says", "field", "test"})),
    }


def find_losses() -> Iterator[str]:
    """Yield a sentence for each field that is lost on the way between two formats that can both say it."""
    for each in survival.lost_between():
        yield f"{each.path} is lost from {each.source} to {each.target}, which can both say it."


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


def find_stale(pages: Mapping[str, Page], folder: Path = DOCS) -> Iterator[str]:
    """Yield a sentence for each committed page that differs from what the code says now."""
    for name in COMMITTED:
        file = folder / name
        if not file.exists() or file.read_text(encoding="utf-8") != pages[name].text:
            yield f"docs/{name} is stale: run `make docs` and commit it."


def write(pages: Mapping[str, Page], folder: Path) -> None:
    """Write pages into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in pages.items():
        (folder / name).write_text(page.text, encoding="utf-8")


def main() -> int:
    """Write the pages; return 1 when a row lacks its text, a committed page is stale, or a field is lost."""
    parser = argparse.ArgumentParser(prog="python -m tests.reference_pages", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="compare the pages in docs/ instead of writing them"
    )
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    django.setup()
    pages = build()
    write(pages, options.folder)
    print(f"{len(pages)} pages in {options.folder}")
    if not options.check:
        write({name: pages[name] for name in COMMITTED}, DOCS)
    gaps = [*find_gaps(pages), *find_stale(pages), *find_losses(), *engines.find_unexplained()]
    for gap in gaps:
        print(gap)
    return int(bool(gaps))


if __name__ == "__main__":
    sys.exit(main())
