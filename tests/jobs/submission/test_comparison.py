"""Differences are right for what people write, and soon told for what was made to take long."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.spec import JobSpec, TaskRole
from jobs.submission.changes import changes
from jobs.submission.comparison import Matcher, line_difference

MOST_CPU_S = 2.0


def test_line_difference_is_written_as_diff_writes_it() -> None:
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
def test_matcher_opcodes_make_one_list_of_the_other(old: list[str], new: list[str]) -> None:
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
def test_line_difference_of_hostile_texts_is_told_soon(what: str) -> None:
    before, after = HOSTILE[what]
    begun = time.process_time()
    assert len(line_difference(before, after)) <= 300
    assert time.process_time() - begun < MOST_CPU_S


def test_changes_of_many_long_commands_are_told_soon() -> None:
    specs = [
        JobSpec(
            name="j",
            roles=tuple(TaskRole(name=f"r{n}", command=f"{word} {n} " * 450) for n in range(500)),
        )
        for word in ("a b", "b a")
    ]
    begun = time.process_time()
    assert changes(*specs)
    assert time.process_time() - begun < 2 * MOST_CPU_S
