"""`python -m tests.bench.points`: parse a log of points and one without any; print CPU seconds as JSON."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Final

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
django.setup()

from jobs.models import TrainingSeries  # noqa: E402  # settings come first
from jobs.training_metrics.output import parse  # noqa: E402
from jobs.training_metrics.series import Appender  # noqa: E402

POINTS: Final = 1_000_000
NAMES: Final = ("loss", "lr")
TEXT_MB: Final = 100
LINE: Final = b"2026-11-26 22:40:13,123 INFO worker some text of a program without any number to plot\n"


def main() -> None:
    """Measure both."""
    lines = (f"step={step} loss={1 / (step + 1):.6f} lr=1e-4\n" for step in range(POINTS // len(NAMES)))
    points = "".join(lines).encode()
    text = LINE * (TEXT_MB * 1_000_000 // len(LINE))
    measured = {"points_s": _seconds(lambda: _append(points))}
    measured["text_mb_s"] = TEXT_MB / _seconds(lambda: list(parse(text)))
    print(json.dumps(measured))


def _append(data: bytes) -> None:
    series = {name: Appender(TrainingSeries(name=name, axis="step"), []) for name in NAMES}
    for sample in parse(data):
        series[sample.name].add(sample)
    assert sum(each.row.count for each in series.values()) == POINTS


def _seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


if __name__ == "__main__":
    main()
