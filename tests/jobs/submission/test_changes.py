"""What differs between two jobs, in words."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.spec import JobSpec, Resources, TaskRole
from jobs.submission.changes import changes, one_line
from tests.factories import make_spec


def spec(command: str = "python train.py --lr 0.1", **fields: Any) -> JobSpec:
    role = {name: fields.pop(name) for name in ("resources", "replicas", "image") if name in fields}
    return make_spec(roles=(TaskRole(name="main", command=command, **role),), **fields)


def told(before: JobSpec, after: JobSpec) -> list[str]:
    return [str(each) for each in changes(before, after)]


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("python train.py --lr 0.01", "--lr 0.1 → 0.01 (Start command)"),
        ("python eval.py --lr 0.1", "Start command: train.py → eval.py"),
        ("python train.py --lr 0.1 --epochs 3", "Start command: --epochs 3, was empty"),
        ("python train.py", "Start command: empty, was --lr 0.1"),
    ],
)
def test_a_command_is_compared_word_by_word(command: str, line: str) -> None:
    assert told(spec(), spec(command)) == [line]
    assert told(spec("train --lr=0.1"), spec("train --lr=0.01")) == ["--lr 0.1 → 0.01 (Start command)"]


def test_fields_are_told_by_name_and_with_their_units() -> None:
    after = spec(
        env={"LR": "2"},
        time_limit_s=7200,
        priority=3,
        resources=Resources(gpus=2, memory_mib=4096, cpu_milli=1500),
        replicas=4,
    )
    assert told(spec(env={"LR": "1"}), after) == [
        "Replicas: 1 → 4",
        "CPU: 1 CPU core → 1.5 CPU cores",
        "Memory: 1 GiB → 4 GiB",
        "GPUs: 0 → 2",
        "Environment variable LR: 1 → 2",
        "Priority: 3, was empty",
        "Longest running time: 2 h, was empty",
    ]


def test_of_several_roles_it_says_which() -> None:
    two = make_spec(roles=(TaskRole(name="ps", command="true"), TaskRole(name="worker", command="true")))
    more = make_spec(
        roles=(TaskRole(name="ps", command="true"), TaskRole(name="worker", command="true", replicas=8))
    )
    assert told(two, more) == ["Replicas of worker: 1 → 8"]


def test_one_line_names_what_matters_and_counts_the_rest() -> None:
    assert one_line(changes(spec(), spec())) == ""
    assert one_line(changes(spec(name="a"), spec(name="b"))) == "Name: a → b"
    assert one_line(changes(spec(name="a"), spec("python train.py --lr 1", name="b"))) == (
        "--lr 0.1 → 1 (Start command)"
    )
    many = spec(env={f"X{number}": "1" for number in range(5)})
    assert one_line(changes(spec(), many)).endswith("; and 2 more changes")


def test_long_texts_end() -> None:
    found = changes(spec("x " * 5000), spec("y " * 5000))
    assert max(len(str(each)) for each in found) < 250
