"""Metrics in lines of output."""

from __future__ import annotations

import json
import math
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.training_metrics.output import LONGEST_LINE, LONGEST_NAME, parse

NAMES: Final = st.from_regex(r"[a-z]{1,8}_loss", fullmatch=True)
VALUES: Final = st.floats(allow_nan=False, allow_infinity=False)
STEPS: Final = st.integers(0, 10**9)


def read(text: str | bytes) -> list[tuple[str, str, float, float]]:
    data = text.encode() if isinstance(text, str) else text
    return [(each.name, each.axis, each.step, each.value) for each in parse(data)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("step=100 loss=0.31 lr=1e-4", [("loss", "step", 100, 0.31), ("lr", "step", 100, 1e-4)]),
        (
            "Epoch 3/10 - loss: 0.5 - val_acc: 0.91",
            [("loss", "epoch", 3, 0.5), ("val_acc", "epoch", 3, 0.91)],
        ),
        ('{"step": 100, "loss": 0.31, "ok": true}', [("loss", "step", 100, 0.31)]),
        ("{'loss': 0.5, 'epoch': 0.1}", [("loss", "epoch", 0.1, 0.5)]),
        ("iter 100: loss 2.5, time 20ms, mfu 5%", [("loss", "iteration", 100, 2.5)]),
        ("step 5: train loss 1.9, val loss 2", [("train_loss", "step", 5, 1.9), ("val_loss", "step", 5, 2)]),
        ("Epoch: [1][ 10/40]\tLoss 7.0e+00 (7.1e+00)", [("Loss", "epoch", 1.25, 7)]),
        ("[step 100/1000] \x1b[32mloss\x1b[0m=0.3.", [("loss", "step", 100, 0.3)]),
        ("global_step: 7, epoch: 1, accuracy: 91.2%", [("accuracy", "step", 7, 91.2)]),
        ("step=1 loss=0.9\rstep=2 loss=0.8", [("loss", "step", 1, 0.9), ("loss", "step", 2, 0.8)]),
        ("5/100 [00:01<00:20, 4.5it/s, loss=0.312]", [("loss", "", 0, 0.312)]),
        ("2026-11-26 22:40:13 INFO port=8080 workers: 3", []),
        ("step=1 loss=nan", []),
        ('{"step": 1, "loss": 1e999, "acc": NaN}', []),
        ("step=1 loss=1.2.3 loss=12:30 loss=5GB", []),
        (f"step=1 {'x' * LONGEST_LINE} loss=1", []),
    ],
)
def test_line_gives_metrics_of_known_spellings(
    line: str, expected: list[tuple[str, str, float, float]]
) -> None:
    assert read(line) == expected


@given(NAMES, STEPS, VALUES)
def test_printed_number_is_read_back_exactly(name: str, step: int, value: float) -> None:
    expected = [(name, "step", float(step), value)]
    assert read(f"step={step} {name}={value!r}") == expected
    assert read(json.dumps({"step": step, name: value})) == expected


@given(st.binary(max_size=300) | st.text('ste={}:"loss 01.9eE+-/[]\r\n', max_size=200).map(str.encode))
def test_any_bytes_give_finite_numbers_by_bounded_names(data: bytes) -> None:
    for name, axis, step, value in read(data):
        assert 0 < len(name) <= LONGEST_NAME
        assert axis in {"", "step", "iteration", "epoch"}
        assert math.isfinite(step)
        assert math.isfinite(value)


@given(st.lists(st.tuples(NAMES, STEPS, VALUES), max_size=10), st.data())
def test_pieces_of_whole_lines_give_what_the_whole_gives(
    rows: list[tuple[str, int, float]], data: st.DataObject
) -> None:
    lines = [f"step={step} {name}={value!r}\n" for name, step, value in rows]
    at = data.draw(st.integers(0, len(lines)))
    assert read("".join(lines[:at])) + read("".join(lines[at:])) == read("".join(lines))
