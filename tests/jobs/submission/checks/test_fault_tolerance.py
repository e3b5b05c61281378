"""Arguments of fault tolerance that are misspelled, wrong or without effect are told at check time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.dialects.fault_arguments import ARGUMENTS, ArgumentKind
from jobs.messages import note_message, problem_message
from jobs.spec import Check, FaultTolerance, JobSpec, RestartPolicy, RestartScope, RoleSpec
from jobs.submission.checks import fault_tolerance


def spec(arguments: str, *, enabled: bool = True) -> JobSpec:
    role = RoleSpec(name="worker", command="true")
    return JobSpec(
        name="job", roles=(role,), fault_tolerance=FaultTolerance(enabled=enabled, arguments=arguments)
    )


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
    found = fault_tolerance.find_notes(spec("--enable-local-detection=True --enable-of-tomorrow=1"))
    assert [note_message(note) for note in found] == [
        "--enable-local-detection has no effect here; it is kept for export.",
        "--enable-of-tomorrow is unknown and has no effect here.",
    ]


def test_arguments_of_fault_tolerance_that_is_off_are_not_looked_at() -> None:
    off = spec("--enable-job-restarts --enable-perftracker", enabled=False)
    assert not [*fault_tolerance.find_problems(off), *fault_tolerance.find_notes(off)]


def with_patterns(*patterns: str, arguments: str = "--enable-job-restart") -> JobSpec:
    tolerance = FaultTolerance(enabled=True, arguments=arguments, patterns=patterns)
    return spec("").model_copy(update={"fault_tolerance": tolerance})


def test_patterns_that_can_not_be_looked_for_are_problems() -> None:
    bad = with_patterns("shard [0-9]+", "(lost", r"(a)\1", "x" * 501, "a*", "(((a{255}){255}){255}){255}")
    found = [*fault_tolerance.find_problems(bad)]
    assert {problem.pointer for problem in found} == {"/fault_tolerance/patterns"}
    sentences = [problem_message(problem) for problem in found]
    assert sentences[0].startswith("Output pattern 2 is no regular expression that can be used: Unmatched (")
    assert sentences[1].endswith(
        "3 is no regular expression that can be used: back-references (\\1) are not supported."
    )
    assert sentences[2:4] == [
        "Output pattern 4: at most 500 characters.",
        "Output pattern 5 matches every line. Use a longer one.",
    ]
    assert sentences[4].startswith("Output pattern 6 ")
    (many,) = fault_tolerance.find_problems(with_patterns(*["x"] * 21))
    assert problem_message(many) == "At most 20 output patterns."


def test_patterns_without_restarts_are_noted() -> None:
    good = with_patterns("lost shard [0-9]+", r"\bNaN\b")
    assert not [*fault_tolerance.find_problems(good), *fault_tolerance.find_notes(good)]
    (note,) = fault_tolerance.find_notes(with_patterns("NaN", arguments=""))
    assert note_message(note) == (
        "Output that matches a pattern ends the job: no restarts are allowed. Set a maximum of restarts."
    )


@pytest.mark.parametrize(
    ("command", "limit", "is_noted"),
    [
        ("torchrun --nproc_per_node 2 --max-restarts 5 train.py", 3, True),
        ("cd /code\npython3 -m torch.distributed.run \\\n --standalone --max_restarts=5 -m train", 3, True),
        ("torchrun --max-restarts=3 train.py", 3, False),
        ("torchrun --max-restarts=5 train.py", None, False),
        ("torchrun train.py --max-restarts 5", 3, False),
        ("torchrun --standalone train.py; echo --max-restarts 5", 3, False),
    ],
)
def test_restarts_in_the_command_of_torchrun_are_noted_where_the_field_differs(
    command: str, limit: int | None, is_noted: bool
) -> None:
    role = RoleSpec(name="worker", command=command, restart=RestartPolicy(limit=limit))
    found = fault_tolerance.find_notes(JobSpec(name="job", roles=(role,)))
    sentence = "--max-restarts 5 in the command of worker acts, not 3 restarts of one replica."
    assert [note_message(note) for note in found] == ([sentence] if is_noted else [])


def test_restarts_by_torchrun_are_told_apart_from_those_by_fault_tolerance() -> None:
    tolerance = FaultTolerance(enabled=True, arguments="--enable-job-restart=True --max-num-of-job-restart=2")
    role = RoleSpec(name="worker", command="torchrun --max-restarts 5 train.py")
    (note,) = fault_tolerance.find_notes(JobSpec(name="job", roles=(role,), fault_tolerance=tolerance))
    assert note_message(note) == (
        "torchrun starts the processes of worker again up to 5 times. Only then has the replica failed, and "
        "fault tolerance counts one of its 2 restarts."
    )


def test_restart_scope_of_replicas_is_noted_where_the_whole_job_is_restarted() -> None:
    tolerance = FaultTolerance(
        enabled=True, arguments="--enable-job-restart=True", restart_scope=RestartScope.REPLICA
    )
    role = RoleSpec(name="worker", command="true")
    job = JobSpec(name="job", roles=(role,), fault_tolerance=tolerance)
    assert not [*fault_tolerance.find_notes(job)]
    (note,) = fault_tolerance.find_notes(job.model_copy(update={"sanity_check": Check(enabled=True)}))
    assert (note.code, note.pointer) == ("restart_scope_job", "/fault_tolerance/restart_scope")


VALUES = {ArgumentKind.FLAG: "true", ArgumentKind.WORD: "", ArgumentKind.TEXT: "abc"}


@given(st.sampled_from(ARGUMENTS))
def test_documented_argument_acts_or_is_noted(argument: object) -> None:
    known = next(each for each in ARGUMENTS if each is argument)
    value = known.words[0] if known.words else VALUES.get(known.kind, "12")
    one = spec(f"--{known.name}={value}")
    assert not [*fault_tolerance.find_problems(one)]
    assert bool([*fault_tolerance.find_notes(one)]) is not known.acts
