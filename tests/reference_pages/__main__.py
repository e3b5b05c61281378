"""`python -m tests.reference_pages [FOLDER]` writes the reference, two pages of which are the tests' own."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import django

from console.documentation import reference
from console.home import CHECKOUT
from tests.reference_pages import conversions, engines, form_fields

FOLDER: Final = CHECKOUT / "var" / "docs"


def build() -> Mapping[str, str]:
    """Return every page by its name; Django has to be set up."""
    pages = {name: reference.build(name) for name in reference.NAMES}
    return {
        **pages,
        "backends": engines.page(),
        "conversions": conversions.page(),
        "form-fields": form_fields.page(),
    }


def main() -> None:
    """Write the pages."""
    parser = argparse.ArgumentParser(prog="python -m tests.reference_pages", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    folder: Path = parser.parse_args().folder
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    django.setup()
    folder.mkdir(parents=True, exist_ok=True)
    pages = build()
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    print(f"{len(pages)} pages in {folder}")


if __name__ == "__main__":
    main()
