"""Arguments of fault tolerance that are misspelled, wrong or without effect are told at check time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.dialects.fault_arguments import ARGUMENTS, ArgumentKind
from jobs.messages import note_message, problem_message
from jobs.spec import Check, JobSpec, RoleSpec
from jobs.submission.checks import fault_tolerance


def spec(arguments: str, *, enabled: bool = True) -> JobSpec:
    role = RoleSpec(name="worker", command="true")
    return JobSpec(name="job", roles=(role,), fault_tolerance=Check(enabled=enabled, arguments=arguments))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            "--enable-job-restarts=True",
            "There is no argument --enable-job-restarts. Did you mean --enable-job-restart?",
        ),
        (
            "--max-num-of-job-restart=often",
            "--max-num-of-job-restart can't be often; expected: 0, 1, 2 … (DLC page, AIMaster).",
        ),
        (
            "--fault-tolerant-policy Always",
            "--fault-tolerant-policy can't be Always; expected: OnFailure, ExitCodeAndErrorMsg (scripts).",
        ),
    ],
)
def test_argument_that_is_wrong_is_a_problem(arguments: str, sentence: str) -> None:
    (problem,) = fault_tolerance.find_problems(spec(arguments))
    assert (problem.pointer, problem_message(problem)) == ("/fault_tolerance/arguments", sentence)


def test_argument_without_effect_is_noted() -> None:
    found = fault_tolerance.find_notes(spec("--enable-perftracker=True --enable-of-tomorrow=1"))
    assert [note_message(note) for note in found] == [
        "--enable-perftracker has no effect here; it is kept for export.",
        "--enable-of-tomorrow is unknown and has no effect here.",
    ]


def test_arguments_of_fault_tolerance_that_is_off_are_not_looked_at() -> None:
    off = spec("--enable-job-restarts --enable-perftracker", enabled=False)
    assert not [*fault_tolerance.find_problems(off), *fault_tolerance.find_notes(off)]


VALUES = {ArgumentKind.FLAG: "true", ArgumentKind.WORD: "", ArgumentKind.TEXT: "abc"}


@given(st.sampled_from(ARGUMENTS))
def test_documented_argument_acts_or_is_noted(argument: object) -> None:
    known = next(each for each in ARGUMENTS if each is argument)
    value = known.words[0] if known.words else VALUES.get(known.kind, "12")
    one = spec(f"--{known.name}={value}")
    assert not [*fault_tolerance.find_problems(one)]
    assert bool([*fault_tolerance.find_notes(one)]) is not known.acts
