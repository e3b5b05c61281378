"""The pages of the documentation, for the browser and as results of a search.

They are the Markdown files of `docs/`, and those of the `reference` beside this module, which no file has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

from django.urls import reverse
from markdown_it import MarkdownIt
from markdown_it.token import Token

from console.documentation import reference
from console.home import RESOURCES

DOCS: Final = RESOURCES / "docs"
FIRST: Final = "README"
_MARKDOWN: Final = MarkdownIt("commonmark", {"html": False}).enable("table")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of the first or second level; `anchor` is empty for a page's first one."""

    page: str
    anchor: str
    text: str

    @property
    def url(self) -> str:
        """The address of the heading in the console."""
        return page_url(self.page) + (f"#{self.anchor}" if self.anchor else "")


@dataclass(frozen=True, slots=True)
class Page:
    """A rendered page."""

    title: str
    html: str
    headings: tuple[Heading, ...]


def page_url(page: str) -> str:
    """Return the address of a page, whose name is its path without `.md`."""
    return reverse("documentation") if page == FIRST else reverse("documentation_page", args=[page])


@cache
def list_pages() -> tuple[str, ...]:
    """Return the names of all pages, the first one first."""
    written = (str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md"))
    names = sorted((*written, *reference.NAMES))
    return (FIRST, *(name for name in names if name != FIRST))


@cache
def list_files() -> frozenset[str]:
    """Return the names of the files to which pages link: schemas, examples, rules, dashboards."""
    found = (path for path in DOCS.rglob("*") if path.suffix in {".json", ".py", ".yaml"})
    return frozenset(str(path.relative_to(DOCS)) for path in found)


@cache
def render(page: str) -> Page:
    """Return a page of `list_pages()` as HTML; raw HTML in the file is shown as text."""
    tokens = _MARKDOWN.parse(_read(page))
    headings: list[Heading] = []
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            anchor = _anchor(inline.content)
            opening.attrSet("id", anchor)
            if opening.tag in {"h1", "h2"}:
                text = "".join(part.content for part in inline.children or ())
                headings.append(Heading(page, anchor if headings else "", text))
    for token in tokens:
        if token.type == "fence":
            token.type = "code_block"  # whose attributes are those of the element that scrolls
        if token.type in {"code_block", "table_open"}:
            token.attrSet("tabindex", "0")  # what is wider than the page is reached by keys too
        for part in token.children or ():
            _redirect(part, Path(page).parent)
        if token.children:
            token.children = [part for child in token.children for part in _link_reference(child)]
    html = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
    return Page(headings[0].text if headings else page, html, tuple(headings))


def find_headings(words: str, most: int) -> list[Heading]:
    """Return the headings that contain every word, pages' own headings first."""
    wanted = words.casefold().split()
    found = (heading for heading in _headings() if all(word in heading.text.casefold() for word in wanted))
    return sorted(found, key=lambda heading: bool(heading.anchor))[:most]


def _headings() -> Iterator[Heading]:
    for page in list_pages():
        yield from render(page).headings


def _read(page: str) -> str:
    """Return the Markdown of a page."""
    if page in reference.NAMES:
        return reference.build(page)
    return (DOCS / f"{page}.md").read_text(encoding="utf-8")


def _anchor(heading: str) -> str:
    """Return the anchor that hosts of repositories give to a heading, so that links are the same in both."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def _redirect(part: Token, folder: Path) -> None:
    """Let a link to another page, or an image, lead to its address in the console."""
    attribute = {"link_open": "href", "image": "src"}.get(part.type)
    target = str(part.attrGet(attribute) or "") if attribute else ""
    if not attribute or re.match(r"[a-z]+:|#|$", target):
        return
    path, _hash, anchor = target.partition("#")
    # A page lies at the depth of its file, so that `../` means the same in both.
    inside = (DOCS / folder / path).resolve()
    if not inside.is_relative_to(DOCS):
        part.attrSet(attribute, "")
    elif part.type == "image":
        part.attrSet(attribute, reverse("documentation_image", args=[inside.stem]))
    elif inside.suffix == ".md":
        name = str(inside.relative_to(DOCS).with_suffix(""))
        part.attrSet(attribute, page_url(name) + (f"#{anchor}" if anchor else ""))
    elif (name := str(inside.relative_to(DOCS))) in list_files():
        part.attrSet(attribute, reverse("documentation_page", args=[name]))


def _link_reference(part: Token) -> Iterator[Token]:
    """Let the name of a page of the reference, which is code in the files, be a link to it."""
    name = part.content.removesuffix(".md")
    if part.type != "code_inline" or name == part.content or name not in reference.NAMES:
        yield part
        return
    opening = Token("link_open", "a", 1)
    opening.attrSet("href", page_url(name))
    yield from (opening, part, Token("link_close", "a", -1))
