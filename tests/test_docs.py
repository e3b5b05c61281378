"""The documentation: its links, and the files, names and commands that it mentions, exist."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Final

import pytest
from django.core.management import get_commands

from console.home import CHECKOUT

DOCS: Final = CHECKOUT / "docs"
FIRST_PAGES: Final = tuple(
    CHECKOUT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
)
PAGES: Final = (*FIRST_PAGES, *sorted(DOCS.rglob("*.md")))
LINK: Final = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
NAMED: Final = re.compile(r"docs/[\w/-]+\.(?:md|json)")
CODE: Final = ("client", "console", "jobs", "quotas", "static/console", "templates")
SPAN: Final = re.compile(r"`([^`]+)`")
FOLDERS: Final = "client|console|docs|jobs|locale|quotas|static|templates|tests|tools"
PATH: Final = re.compile(rf"(?:{FOLDERS})/[\w./*-]*")
SHORT_PATH: Final = re.compile(r"[\w*-]+\.(?:css|html|js|py|sh)")
DOTTED: Final = re.compile(r"(?:console|jobs|quotas|tests)(?:\.[a-zA-Z_]\w*)+")
NO_MODULE: Final = re.compile(r"console\.(?:[EW]\d+|example\..*)")
"""Ids of checks, and the host names of examples."""
MOST_WORDS: Final = 25_000
"""Of README.md and docs/ together, as `wc -w` counts."""
ADDED: Final = ("jobs/backends/detached", "jobs/dialects/plain", "jobs.backends.detached")
"""What docs/extending.md adds to the code."""


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


def passages(page: Path) -> Iterator[list[str]]:
    """Yield the code spans of each paragraph, and of each cell of a table."""
    for paragraph in re.split(r"\n\s*\n", read_prose(page)):
        is_table = paragraph.lstrip().startswith("|")
        for passage in re.split(r"(?<!\\)\|", paragraph) if is_table else [paragraph]:
            yield SPAN.findall(passage)


def paths(page: Path) -> Iterator[str]:
    """Yield each path that a page names; a short name is in the folder of the path named before it."""
    for spans in passages(page):
        folder = None
        for span in spans:
            if PATH.fullmatch(span) and not is_placeholder(span):
                yield span
                folder = span.rpartition("/")[0]
            elif folder and SHORT_PATH.fullmatch(span):
                yield f"{folder}/{span}"


def is_placeholder(path: str) -> bool:
    """Return whether a part of the path stands for a name, as in `jobs/ID/file`, or the page adds it."""
    return bool(re.search(r"(?:^|/)[A-Z]{2,}(?:/|$)", path)) or path.startswith(ADDED)


def dotted_names(page: Path) -> Iterator[str]:
    """Yield each module, class and function that a page names in full."""
    for spans in passages(page):
        for word in " ".join(spans).split():
            name = re.sub(r"\(.*", "", word)
            if DOTTED.fullmatch(name) and not NO_MODULE.fullmatch(name) and not name.startswith(ADDED):
                yield name


def can_resolve(name: str) -> bool:
    """Return whether a dotted name can be imported."""
    try:
        resolve_name(name)
    except (AttributeError, ImportError):
        return False
    return True


EACH_PAGE: Final = pytest.mark.parametrize(
    "page", PAGES, ids=[str(page.relative_to(CHECKOUT)) for page in PAGES]
)


def picture() -> dict[str, list[str]]:
    """Return the layers of each package in the picture of docs/architecture.md, top first."""
    [block] = re.findall(
        r"^```\n(console .*?)^```$",
        (DOCS / "architecture.md").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    found: dict[str, list[str]] = {}
    for line in block.splitlines():
        text = re.split(r" {2,}", line.strip())[0]
        if line.startswith(" "):
            found[list(found)[-1]].append(text)
        else:
            found[text] = []
    return found


@EACH_PAGE
def test_paths_of_a_page_exist(page: Path) -> None:
    assert [path for path in paths(page) if not any(CHECKOUT.glob(path.rstrip("/")))] == []


@EACH_PAGE
def test_dotted_names_of_a_page_resolve(page: Path) -> None:
    assert [name for name in dotted_names(page) if not can_resolve(name)] == []


@EACH_PAGE
def test_commands_of_a_page_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z./]+):", (CHECKOUT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    made = re.findall(r"(?:^ {4}|`)(?:REQUIRE_ALL=1 )?make ([a-z./]+)", text, re.MULTILINE)
    assert set(re.findall(r"manage\.py ([a-z_]+)", text)) - set(get_commands()) == set()
    assert set(made) - set(targets) == set()


@EACH_PAGE
def test_links_of_a_page_resolve(page: Path) -> None:
    broken = [
        link
        for link, file, anchor in links(page)
        if not file.is_file() or (anchor and anchor not in anchors(file))
    ]
    assert broken == []


def reachable_from(first: Path) -> set[Path]:
    """Return the pages to which links lead from a page, directly or by others."""
    found: set[Path] = set()
    queue = [first]
    while queue:
        page = queue.pop()
        if page.suffix == ".md" and page.is_file() and page not in found:
            found.add(page)
            queue += [file for _link, file, _anchor in links(page)]
    return found


@pytest.mark.parametrize("first", [CHECKOUT / "README.md", DOCS / "README.md"], ids=["README", "docs"])
def test_links_from_the_first_page_reach_every_page(first: Path) -> None:
    assert set(PAGES) - reachable_from(first) == set()


def test_changelog_starts_with_the_version_of_the_project() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    changelog = (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[?(\d+\.\d+\.\d+)\]? \(\d{4}-\d\d-\d\d\)$", changelog, re.MULTILINE)
    assert versions[:1] == [project["version"]]


def test_pages_named_by_the_code_exist() -> None:
    files = (file for folder in CODE for file in (CHECKOUT / folder).rglob("*.*"))
    named = {
        name
        for file in files
        if file.suffix in {".py", ".html", ".js"}
        for name in NAMED.findall(file.read_text(encoding="utf-8"))
    }
    assert named
    assert {name for name in named if not (CHECKOUT / name).is_file()} == set()


def test_picture_of_the_packages_has_the_layers_that_are_checked() -> None:
    contracts = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "importlinter"
    ]["contracts"]
    [packages] = (
        each["layers"] for each in contracts if each["type"] == "layers" and "containers" not in each
    )
    inside = {
        each["containers"][0]: [re.sub(r" [|:] ", ", ", layer) for layer in each["layers"]]
        for each in contracts
        if "containers" in each
    }
    assert list(picture()) == packages
    assert picture() == inside


def test_documentation_stays_short_enough_to_be_read() -> None:
    pages = (CHECKOUT / "README.md", *DOCS.rglob("*.md"))
    counts = sorted(((len(page.read_text(encoding="utf-8").split()), page) for page in pages), reverse=True)
    longest = ", ".join(f"{page.relative_to(CHECKOUT)} ({count})" for count, page in counts[:5])
    total = sum(count for count, _page in counts)
    assert total <= MOST_WORDS, (
        f"README.md and docs/ have {total} words, {total - MOST_WORDS} too many. Say it more briefly, remove "
        "what another page says, move reasons into comments and examples into docs/examples, and let "
        f"console/documentation/reference make what the code knows. The longest pages: {longest}."
    )
