"""Tables in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with a line for each row."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def rows(text: str) -> Iterator[Mapping[str, str]]:
    """Yield each row of each table of a page, as cells by the names of their columns."""
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        head, _line, *lines = (_split(line) for line in block.splitlines())
        for line in lines:
            yield dict(zip(head, line, strict=True))


def cell(text: str) -> str:
    """Text that may stand in a cell."""
    return text.replace("|", "\\|").replace("\n", " ")


def code(text: str) -> str:
    """Text as code, or nothing."""
    return f"`{cell(text)}`" if text else ""


def _split(line: str) -> list[str]:
    return [each.strip() for each in re.split(r"(?<!\\)\|", line)[1:-1]]
