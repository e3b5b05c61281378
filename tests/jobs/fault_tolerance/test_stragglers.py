"""Step times in output, and the ranks that are slow by them."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.fault_tolerance.stragglers import STEPS, add, find_new, find_times


@pytest.mark.parametrize(
    ("line", "times"),
    [
        ("step=100 loss=2.1 time=0.31", [0.31]),
        ("Epoch: [0]  [ 260/9143]  eta: 1:27:06  lr: 0.000003  time: 0.5645  data: 0.0003", [0.5645]),
        ("eta: 19:46:55  iter: 4959  total_loss: 10.31  time: 0.2815  data_time: 0.0115", [0.2815]),
        ("step:8850/20000 train_loss:2.2884 train_time:576460ms step_avg:65.14ms", [0.06514]),
        (" iteration      100/  500 | elapsed time per iteration (ms): 1234.5 | lm loss: 3.1", [1.2345]),
        ("  5%|4    | 130/2724 [4:48:39<95:46:57, 132.93s/it]", [132.93]),
        ("iter 7 step_time: 310 ms", [0.31]),
        ("batch 12, time 0.5s", [0.5]),
        ("start time: 12", []),
        ("step 3 at time 12:30:01", []),
        ("step=1 loss=0.1", []),
    ],
)
def test_step_times_are_read_from_the_usual_lines(line: str, times: list[float]) -> None:
    assert find_times(line.encode()) == times


def steps(*seconds: float, count: int = STEPS) -> dict[str, dict[str, Any]]:
    lines = {f"worker/{n}": f"step=1 time={each}\n".encode() * count for n, each in enumerate(seconds)}
    return {key: add(None, data) for key, data in lines.items()}


def test_straggler_is_found_once_and_again_after_it_was_fast() -> None:
    found, kept = find_new(steps(0.3, 0.3, 0.6, 0.31))
    assert [(each.key, each.step_s, each.median_s, each.ranks) for each in found] == [
        ("worker/2", 0.6, 0.305, 4)
    ]
    assert find_new(kept)[0] == []
    kept["worker/2"] = add(kept["worker/2"], b"step=2 time=0.3\n")
    found, kept = find_new(kept)
    assert found == []
    kept["worker/2"] = add(kept["worker/2"], b"step=3 time=0.9\n" * STEPS)
    assert [each.key for each in find_new(kept)[0]] == ["worker/2"]


@pytest.mark.parametrize(
    "known", [steps(0.3, 0.9), steps(0.3, 0.3, 0.44), steps(0.3, 0.3, 0.9, count=STEPS - 1), {}]
)
def test_no_straggler_among_few_ranks_steps_or_differences(known: dict[str, dict[str, Any]]) -> None:
    assert find_new(known)[0] == []
