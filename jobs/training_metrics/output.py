"""Metrics in the output of a program: `step=100 loss=0.31`, `Epoch 3/10 - val_acc: 0.91`, JSON lines.

A line counts if it names a step (`global_step`, `step`, `iteration`, `epoch`): then each of its numbers is a
metric.  On any other line only names that metrics usually have count (`loss`, `accuracy`, …).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

LONGEST_LINE: Final = 16 * 1024
"""Bytes; a longer line has no metrics."""

LONGEST_NAME: Final = 64


class Sample(NamedTuple):
    """A value of a metric; `axis` says of what kind the step is, "" if the line names none."""

    name: str
    axis: str
    step: float
    value: float


_NUMBER: Final = rb"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?"
_END: Final = rb"(?![\w:/-]|\.\d)"
_STEP: Final = re.compile(
    rb"(?<!\w)(global[_ ]step|steps?|iter(?:ation)?|epoch)[\"']?[ \t]?[=:]?[ \t]{0,8}[\[(]?[ \t]{0,8}"
    rb"(\d++(?:\.\d++)?)(?:[ \t]?/[ \t]?\d++)?\]?(?:\[[ \t]{0,8}(\d++)/(\d++)\])?(?!\w|\.\d|:\d)",
    re.IGNORECASE,
)
_PAIR: Final = re.compile(
    rb"(?<![\w./@-])((?:(?:[Tt]rain|[Tt]raining|[Vv]al|[Vv]alid|[Vv]alidation|[Ee]val|[Tt]est) )?"
    rb"[A-Za-z][\w./@-]{0,63})[\"']?(?:[ \t]?([=:])[ \t]{0,8}|[ \t]{1,8})(" + _NUMBER + rb")" + _END
)
_COLOUR: Final = re.compile(rb"\x1b\[[0-9;]*m")
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./@ -]{0,63}")
_AXES: Final = {
    "global_step": "step",
    "global step": "step",
    "step": "step",
    "steps": "step",
    "iteration": "iteration",
    "iter": "iteration",
    "epoch": "epoch",
}
"""The axis by the word that names the step; the first of these words on a line counts."""

_RANKS: Final = {word: rank for rank, word in enumerate(_AXES)}
_NOT_METRICS: Final = frozenset(
    {*_AXES, "rank", "local_rank", "world_size", "pid", "seed", "port", "time", "timestamp", "ts"}
)
_USUAL: Final = re.compile(
    r"(?:.*[^a-z])?(?:loss|acc(?:uracy)?|lr|learning_rate|ppl|perplexity|f1|auc|bleu|rouge\w*|map|m?iou|dice"
    r"|precision|recall|reward|return|error|r?mse|mae|nll|elbo|psnr|ssim|wer|cer|fid|score)"
    r"(?:[^a-z].*)?"
)
_HINT: Final = re.compile(
    rb"step|iter|epoch|loss|acc|lr|learning|ppl|perplexity|f1|auc|bleu|rouge|map|iou|dice|precision|recall"
    rb"|reward|return|error|mse|mae|nll|elbo|psnr|ssim|wer|cer|fid|score"
)
"""A line without any of these has no metrics; it is much faster to find than a pair."""

_JSON: Final = json.JSONDecoder()


def parse(data: bytes) -> Iterator[Sample]:
    """Yield the samples of whole lines; a carriage return ends a line too, as progress bars have it."""
    for line in data.replace(b"\r", b"\n").split(b"\n"):
        if 5 < len(line) <= LONGEST_LINE and _HINT.search(line.lower()):
            yield from _parse_line(line)


def _parse_line(line: bytes) -> Iterable[Sample]:
    if b"\x1b" in line:
        line = _COLOUR.sub(b"", line)
    if line.startswith(b"{") and (found := _read_object(line)) is not None:
        return _samples_of_object(found)
    return _samples_of_text(line)


def _read_object(line: bytes) -> Mapping[str, Any] | None:
    try:
        found = _JSON.decode(line.decode())
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _samples_of_object(found: Mapping[str, Any]) -> Iterator[Sample]:
    numbers = {name: number for name, value in found.items() if (number := _number(value)) is not None}
    steps = [(_RANKS[name], number) for name, number in numbers.items() if name in _RANKS]
    axis, step = _first_step(steps)
    for name, value in numbers.items():
        if _NAME.fullmatch(name) and _is_metric(name, bool(axis)):
            yield Sample(name, axis, step, value)


def _number(value: Any) -> float | None:
    """Return a finite number of JSON; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _samples_of_text(line: bytes) -> Iterator[Sample]:
    pairs = _PAIR.findall(line)
    if not pairs:
        return
    steps = [
        (
            _RANKS[word.lower().decode()],
            float(whole) + (float(part) / max(1.0, float(total)) if total else 0.0),
        )
        for word, whole, part, total in _STEP.findall(line)
    ]
    axis, step = _first_step(steps)
    for raw, sign, number in pairs:
        name = _clean(raw)
        if not _is_metric(name, bool(axis and sign)):
            continue
        value = float(number)
        if math.isfinite(value):
            yield Sample(name, axis, step, value)


def _first_step(steps: list[tuple[int, float]]) -> tuple[str, float]:
    """Return the axis and step of a line."""
    finite = [(rank, step) for rank, step in steps if math.isfinite(step)]
    if not finite:
        return "", 0.0
    rank, step = min(finite)
    return list(_AXES.values())[rank], step


@lru_cache(maxsize=4096)
def _clean(raw: bytes) -> str:
    """Return the name of a metric as it is stored."""
    return raw.decode("ascii", "replace").replace(" ", "_")[:LONGEST_NAME].rstrip("./@-")


@lru_cache(maxsize=4096)
def _is_metric(name: str, has_step: bool) -> bool:
    """Tell whether a number by that name is a metric, on a line with or without a step."""
    lower = name.lower()
    return lower not in _NOT_METRICS and (has_step or _USUAL.fullmatch(lower) is not None)
