"""What was measured, and how it is told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One value, in `unit`, beside what `baseline` says about `beside`; `target` is DESIGN section 13's."""

    what: str
    value: float
    unit: str
    baseline: float | None = None
    beside: str = ""
    target: str = ""

    @property
    def ratio(self) -> float | None:
        """The value over its baseline."""
        return self.value / self.baseline if self.baseline else None

    def to_json(self) -> dict[str, Any]:
        """All of it, with the ratio."""
        return {**asdict(self), "ratio": self.ratio}


HEAD = ("what", "value", "baseline", "ratio", "target")


def table(figures: Iterable[Figure]) -> str:
    """A Markdown table that is also readable in a terminal."""
    rows = [HEAD, *map(_row, figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = [_line(row, widths) for row in rows]
    rule = "|".join("-" * (width + 2) for width in widths)
    return "\n".join([lines[0], f"|{rule}|", *lines[1:]])


def _row(figure: Figure) -> tuple[str, ...]:
    beside = f"{_number(figure.baseline)} {figure.unit}, {figure.beside}" if figure.baseline else ""
    ratio = f"{figure.ratio:.2f}×" if figure.ratio else ""
    return (figure.what, f"{_number(figure.value)} {figure.unit}", beside, ratio, figure.target)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest of `values` that `percent` of them do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * int(percent * 10) // 1000) - 1)]
