"""Differences between two jobs, in words, and in time that grows with their length."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.spec import JobSpec, Resources, RoleSpec
from jobs.submission.differences import Matcher, changes, line_difference, one_line
from tests.factories import make_spec


def spec(command: str = "python train.py --lr 0.1", **fields: Any) -> JobSpec:
    role = {name: fields.pop(name) for name in ("resources", "replicas", "image") if name in fields}
    return make_spec(roles=(RoleSpec(name="main", command=command, **role),), **fields)


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
def test_command_difference_is_shown_word_by_word(command: str, line: str) -> None:
    assert told(spec(), spec(command)) == [line]
    assert told(spec("train --lr=0.1"), spec("train --lr=0.01")) == ["--lr 0.1 → 0.01 (Start command)"]


def test_field_differences_show_names_and_units() -> None:
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
        "Time limit: 2 h, was empty",
    ]


def test_role_difference_names_role_among_several() -> None:
    two = make_spec(roles=(RoleSpec(name="ps", command="true"), RoleSpec(name="worker", command="true")))
    more = make_spec(
        roles=(RoleSpec(name="ps", command="true"), RoleSpec(name="worker", command="true", replicas=8))
    )
    assert told(two, more) == ["worker: Replicas: 1 → 8"]


def test_one_line_difference_names_main_change_and_counts_rest() -> None:
    assert one_line(changes(spec(), spec())) == ""
    assert one_line(changes(spec(name="a"), spec(name="b"))) == "Name: a → b"
    assert one_line(changes(spec(name="a"), spec("python train.py --lr 1", name="b"))) == (
        "--lr 0.1 → 1 (Start command)"
    )
    many = spec(env={f"X{number}": "1" for number in range(5)})
    assert one_line(changes(spec(), many)).endswith("; 2 more changes")


def test_difference_of_long_texts_is_shortened() -> None:
    found = changes(spec("x " * 5000), spec("y " * 5000))
    assert max(len(str(each)) for each in found) < 250


MOST_CPU_S = 2.0


def test_line_difference_matches_unified_diff_format() -> None:
    before = [f"line {n}" for n in range(20)]
    after = [*before[:3], "new", *before[3:10], *before[11:19], "other"]
    assert line_difference(before, after) == [
        ("place", "@@ -3,2 +3,3 @@"),
        ("same", " line 2"),
        ("new", "+new"),
        ("same", " line 3"),
        ("place", "@@ -10,3 +11,2 @@"),
        ("same", " line 9"),
        ("old", "-line 10"),
        ("same", " line 11"),
        ("place", "@@ -19,2 +19,2 @@"),
        ("same", " line 18"),
        ("old", "-line 19"),
        ("new", "+other"),
    ]
    assert line_difference(before, before) == []
    assert line_difference([], ["a"]) == [("place", "@@ -0,0 +1 @@"), ("new", "+a")]


@given(st.lists(st.sampled_from("abcdef"), max_size=30), st.lists(st.sampled_from("abcdef"), max_size=30))
def test_matcher_opcodes_transform_one_list_into_other(old: list[str], new: list[str]) -> None:
    made: list[str] = []
    place = 0
    for tag, begin_a, end_a, begin_b, end_b in Matcher(old, new).get_opcodes():
        assert begin_a == place
        place = end_a
        assert (old[begin_a:end_a] == new[begin_b:end_b]) == (tag == "equal")
        made += old[begin_a:end_a] if tag == "equal" else new[begin_b:end_b]
    assert (made, place) == (new, len(old))


HOSTILE = {
    "one line, repeated": (["x"] * 90_000, ["x", "y"] * 45_000),
    "few lines in any order": tuple(
        [random.Random(seed).choice("abcd") for _ in range(90_000)] for seed in (1, 2)
    ),
    "all lines in the other order": ([str(n) for n in range(90_000)], [str(n) for n in range(90_000, 0, -1)]),
    "no line in common": ([f"a{n}" for n in range(90_000)], [f"b{n}" for n in range(90_000)]),
    "pairs between anchors": (
        [each for n in range(9_000) for each in (str(n), *"xyxyxyxyx")],
        [each for n in range(9_000) for each in (str(n), *"yyxxyyxxyy")],
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_line_difference_of_hostile_texts_is_fast(what: str) -> None:
    before, after = HOSTILE[what]
    begun = time.process_time()
    assert len(line_difference(before, after)) <= 300
    assert time.process_time() - begun < MOST_CPU_S


def test_changes_of_many_long_commands_are_fast() -> None:
    specs = [
        JobSpec(
            name="j",
            roles=tuple(RoleSpec(name=f"r{n}", command=f"{word} {n} " * 450) for n in range(500)),
        )
        for word in ("a b", "b a")
    ]
    begun = time.process_time()
    assert changes(*specs)
    assert time.process_time() - begun < 2 * MOST_CPU_S
