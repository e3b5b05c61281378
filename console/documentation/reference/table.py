"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with a line for each row."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def cell(text: str) -> str:
    """Return text that may stand in a cell."""
    return text.replace("|", "\\|").replace("\n", " ")


def code(text: str) -> str:
    """Return text as code, or nothing."""
    return f"`{cell(text)}`" if text else ""
