"""`python -m tests.dialect_pages --write` saves docs/dialects; `--check` fails where it is out of date."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from tests.dialect_pages import backends, conversions, fields

FOLDER: Final = Path(__file__).parents[2] / "docs" / "dialects"
PAGES: Final = {
    "fields.md": fields.page,
    "conversions.md": conversions.page,
    "../backends-fields.md": backends.page,
}


def stale() -> list[str]:
    """The names of the pages that don't say what the code does."""
    return [name for name, page in PAGES.items() if _saved(name) != page()]


def main() -> int:
    """Do what was asked for; 1 when a page is out of date."""
    parser = argparse.ArgumentParser(prog="python -m tests.dialect_pages", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true", help="save the pages")
    what.add_argument("--check", action="store_true", help="fail when a saved one differs")
    if parser.parse_args().write:
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name, page in PAGES.items():
            (FOLDER / name).write_text(page(), encoding="utf-8")
        return 0
    found = stale()
    for name in found:
        print(f"docs/dialects/{name} is out of date: `python -m tests.dialect_pages --write`.")
    return int(bool(found))


def _saved(name: str) -> str:
    path = FOLDER / name
    return path.read_text(encoding="utf-8") if path.is_file() else ""


if __name__ == "__main__":
    sys.exit(main())
