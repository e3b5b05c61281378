"""`--array`: what Slurm 22.05 takes for an array, and what of it is refused, with its place and a cure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import dialects, messages
from jobs.dialects.base import MOST_JOBS, Array, Refused
from jobs.dialects.document import Document
from jobs.dialects.sbatch import DIALECT, arrays

OPTIONS = "-c1 --mem=1G -J sim"


def script(value: str, *, form: str = "--array={}", more: str = "") -> str:
    return (
        f"#!/bin/bash\n#SBATCH {OPTIONS}{more}\n#SBATCH {form.format(value)}\n\necho $SLURM_ARRAY_TASK_ID\n"
    )


def read(value: str, **said: str) -> Array:
    array = DIALECT.parse(Document(script(value, **said))).array
    assert array is not None
    return array


@pytest.mark.parametrize(
    ("value", "indexes", "at_once", "step"),
    [
        ("0-9", tuple(range(10)), None, 1),
        ("1,3,5", (1, 3, 5), None, 1),
        ("5,3,1,3", (1, 3, 5), None, 1),
        ("0-15:4", (0, 4, 8, 12), None, 4),
        ("1-3,7-20:2%4", (1, 2, 3, 7, 9, 11, 13, 15, 17, 19), 4, 2),
        ("0-3:2%1,7", (0, 2, 7), 1, 2),
        ("7", (7,), None, 1),
        ("1-5:9", (1,), None, 9),
        ("[1-3]", (1, 2, 3), None, 1),
        ("01-03", (1, 2, 3), None, 1),
        ("1,,2", (1, 2), None, 1),
        ('"1, 2"', (1, 2), None, 1),
        ("0-3%0", (0, 1, 2, 3), None, 1),
        ("0-3%", (0, 1, 2, 3), None, 1),
        ("4000000", (4_000_000,), None, 1),
    ],
)
def test_array_is_read_as_by_slurm(
    value: str, indexes: tuple[int, ...], at_once: int | None, step: int
) -> None:
    array = read(value)
    assert (array.indexes, array.at_once, array.step) == (indexes, at_once, step)
    assert array.pointer == "/array"


@pytest.mark.parametrize("form", ["--array={}", "--array {}", "-a {}", "-a{}", "--arr={}"])
def test_array_option_is_read_in_every_spelling(form: str) -> None:
    assert read("0-9%2", form=form).indexes == tuple(range(10))


@pytest.mark.parametrize(
    ("value", "code", "fixed"),
    [
        ("1-", "array_part", None),
        ("-1", "array_part", None),
        ("a", "array_part", None),
        ("0x3", "array_part", None),
        ("1:2", "array_part", None),
        ("1-2-3", "array_part", None),
        ("1-3:2:1", "array_part", None),
        ("3-1:2%4", "array_backwards", "1-3:2%4"),
        ("12-13,2-1", "array_backwards", "12-13,1-2"),
        ("1-3:0%2", "array_step", "1-3%2"),
        ("4000001", "array_index", None),
        ("0-3%x", "array_limit", None),
        ("0-3%-1", "array_limit", None),
        (",", "option_value", None),
        ("1," * 3000, "option_value", None),
        ("0-200", "array_too_long", None),
        ("0-150,200-300", "array_too_long", None),
        ("0-4000000," * 300, "array_too_long", None),
    ],
)
def test_invalid_array_is_reported_with_place_and_possible_fix(
    value: str, code: str, fixed: str | None
) -> None:
    with pytest.raises(Refused) as caught:
        DIALECT.parse(Document(script(value)))
    [problem] = caught.value.problems
    assert (problem.code, problem.line, problem.column) == (code, 3, 17)
    assert "--array" in messages.problem_message(problem)
    if fixed is None:
        assert problem.fix is None
    else:
        assert problem.fix is not None
        assert DIALECT.apply_fixes(Document(script(value)), [problem.fix]) == script(fixed)
        assert read(fixed).indexes


def test_array_may_have_as_many_jobs_as_a_sweep() -> None:
    assert len(read(f"1-{MOST_JOBS}").indexes) == MOST_JOBS


@pytest.mark.parametrize("second", ["#SBATCH hetjob\n#SBATCH -n1\n", ""])
def test_array_of_components_is_refused(second: str) -> None:
    first = "" if second else "#SBATCH -n1\n#SBATCH hetjob\n"
    text = f"#!/bin/sh\n{first}#SBATCH --array=0-1\n{second}\nrun\n"
    with pytest.raises(Refused) as caught:
        DIALECT.parse(Document(text))
    [problem] = caught.value.problems
    assert (problem.code, problem.column) == ("array_of_components", 17)
    assert problem.fix is None


def test_empty_array_is_ignored() -> None:
    assert DIALECT.parse(Document(script('""'))).array is None


def test_array_is_reported_as_a_sweep() -> None:
    notes = {note.code: note for note in DIALECT.parse(Document(script("0-9%2"))).notes}
    assert "needs_slurm" not in notes, "the variables of an array are set wherever it runs"
    words = messages.note_message(notes["array"])
    assert words == "--array=0-9%2 makes this a sweep. Jobs: 10, at most 2 at a time."
    both = script("0-9").replace("echo", "echo $SLURM_JOB_ID")
    names = {note.code: note.params for note in DIALECT.parse(Document(both)).notes}["needs_slurm"]["names"]
    assert names == "$SLURM_JOB_ID"
    alone = script("0-9").replace("#SBATCH --array=0-9\n", "")
    assert "needs_slurm" in {note.code for note in DIALECT.parse(Document(alone)).notes}


def test_array_survives_change_and_is_reported_lost_elsewhere() -> None:
    text = script("0-9%2")
    parsed = DIALECT.parse(Document(text))
    renamed = parsed.spec.model_copy(update={"name": "other"})
    assert DIALECT.render(renamed, parsed.extras, base=Document(text)).text == text.replace(
        "-J sim", "-J other"
    )
    anew = DIALECT.parse(Document(DIALECT.render(renamed, parsed.extras).text)).array
    assert anew == parsed.array
    for name in sorted(set(dialects.NAMES) - {"sbatch"}):
        lost = [
            (each.code, each.line)
            for each in dialects.convert(Document(text), name).losses
            if each.pointer == "/array"
        ]
        assert lost == [("not_carried", 3)], name
    assert dialects.convert(Document(text), "sbatch").document.text == text


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("log/%A_%a.out", "log/17_3.out"),
        ("%4a-%x", "0003-%x"),
        ("%%a%a", "%%a3"),
        ("%j", "%j"),
        ("\\%a", "\\%a"),
    ],
)
def test_file_name_pattern_gets_array_index(pattern: str, name: str) -> None:
    assert arrays.fill_pattern(pattern, 17, 3) == name


def test_array_lists_options_with_index_in_their_value() -> None:
    array = read("0-3", more=" -o out_%A_%a.log --error=err_%j.log --input=in.%a")
    assert array.named == {"/output": "out_%A_%a.log", "/input": "in.%a"}


@given(st.sets(st.integers(0, 4_000_000), min_size=1, max_size=MOST_JOBS), st.integers(1, MOST_JOBS))
def test_array_survives_round_trip(indexes: set[int], at_once: int) -> None:
    array = Array(tuple(sorted(indexes)))
    again = read(arrays.to_text(array, at_once))
    assert again.indexes == array.indexes
    assert again.most_at_once == min(at_once, len(indexes))
