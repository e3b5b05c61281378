"""The documentation: every link inside the repository leads somewhere, and every page can be found."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from console.home import CHECKOUT

DOCS: Final = CHECKOUT / "docs"
PAGES: Final = (CHECKOUT / "README.md", CHECKOUT / "SECURITY.md", *sorted(DOCS.rglob("*.md")))
LINK: Final = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
NAMED: Final = re.compile(r"docs/[\w/-]+\.(?:md|json)")
CODE: Final = ("client", "console", "jobs", "quotas", "static/console", "templates")


@cache
def read_prose(page: Path) -> str:
    """Return a page without its blocks of code."""
    return re.sub(r"(?m)^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors that a host of the repository gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", read_prose(page), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return frozenset(each.strip().replace(" ", "-") for each in plain)


def links(page: Path) -> Iterator[tuple[str, Path, str]]:
    """Yield each link of a page that stays in the repository, as its text, its file and its anchor."""
    for link in LINK.findall(read_prose(page)):
        if not re.match(r"[a-z]+:", link):
            name, _hash, anchor = link.partition("#")
            yield link, (page.parent / name).resolve() if name else page, anchor


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(CHECKOUT)) for page in PAGES])
def test_links_of_a_page_resolve(page: Path) -> None:
    broken = [
        link
        for link, file, anchor in links(page)
        if not file.is_file() or (anchor and anchor not in anchors(file))
    ]
    assert broken == []


def test_every_page_is_reached_from_the_first() -> None:
    found: set[Path] = set()
    waiting = [DOCS / "README.md"]
    while waiting:
        page = waiting.pop()
        if page.suffix == ".md" and page.is_file() and page not in found:
            found.add(page)
            waiting += [file for _link, file, _anchor in links(page)]
    assert set(DOCS.rglob("*.md")) - found == set()


def test_pages_that_the_code_names_exist() -> None:
    files = (file for folder in CODE for file in (CHECKOUT / folder).rglob("*.*"))
    named = {
        name
        for file in files
        if file.suffix in {".py", ".html", ".js"}
        for name in NAMED.findall(file.read_text(encoding="utf-8"))
    }
    assert named
    assert {name for name in named if not (CHECKOUT / name).is_file()} == set()
