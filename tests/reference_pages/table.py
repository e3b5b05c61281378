"""The rows of tables in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping


def rows(text: str) -> Iterator[Mapping[str, str]]:
    """Yield each row of each table of a page, as cells by the names of their columns."""
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        head, _line, *lines = (_split(line) for line in block.splitlines())
        for line in lines:
            yield dict(zip(head, line, strict=True))


def _split(line: str) -> list[str]:
    return [each.strip() for each in re.split(r"(?<!\\)\|", line)[1:-1]]
