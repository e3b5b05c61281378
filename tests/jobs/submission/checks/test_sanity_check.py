"""Arguments of the sanity check that are misspelled, wrong or without effect are told at check time."""

from __future__ import annotations

from jobs.messages import note_message, problem_message
from jobs.spec import Check, JobSpec, RoleSpec
from jobs.submission.checks import sanity_check


def spec(arguments: str, *, enabled: bool = True) -> JobSpec:
    role = RoleSpec(name="worker", command="true")
    return JobSpec(name="job", roles=(role,), sanity_check=Check(enabled=enabled, arguments=arguments))


def test_argument_of_sanity_check_that_is_wrong_is_a_problem() -> None:
    found = sanity_check.find_problems(spec("--sanity-check-timings=x --sanity-check-timeout=0"))
    assert [problem_message(problem) for problem in found] == [
        "There is no argument --sanity-check-timings. Did you mean --sanity-check-timing?",
        "--sanity-check-timeout can't be 0; expected: 1, 2, 3 … (s) (SanityCheck).",
    ]


def test_argument_of_sanity_check_without_effect_is_noted() -> None:
    arguments = "--sanity-check-timeout-ops=Ignore --sanity-check-timeout-minutes=1"
    assert [note_message(note) for note in sanity_check.find_notes(spec(arguments))] == [
        "--sanity-check-timeout-ops has no effect here; it is kept for export.",
        "--sanity-check-timeout-minutes is unknown and has no effect here.",
    ]
    assert not [*sanity_check.find_notes(spec("--sanity-check-timing=AfterJobFaultTolerant"))]
    off = spec("--other=1 --sanity-check-timings=x", enabled=False)
    assert not [*sanity_check.find_notes(off), *sanity_check.find_problems(off)]
