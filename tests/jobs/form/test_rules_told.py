"""What of the rules is told when a job is submitted."""

from __future__ import annotations

from jobs.form import rules
from jobs.form.target import JobTarget
from jobs.spec import Check, Framework, JobSpec
from tests.jobs.form.cases.base import LINGJUN, QUOTA, job


def codes(spec: JobSpec, target: JobTarget, dialect: str) -> set[str]:
    return {note.code for note in rules.notes(spec, target, dialect)}


def test_the_pages_rules_are_told_of_jobs_that_are_bound_for_dlc_alone() -> None:
    spec = job(framework=Framework.XGBOOST)
    assert codes(spec, LINGJUN, "dlc") == codes(spec, LINGJUN, "dlc-params") == {"lingjun_frameworks"}
    assert codes(spec, LINGJUN, "openpai-v1") == set()


def test_what_this_console_does_not_do_is_told_of_every_job() -> None:
    spec = job(framework=Framework.PYTORCH, fault_tolerance=Check(enabled=True))
    assert codes(spec, QUOTA, "aihc") == {"aimaster_not_here"}


def test_what_the_text_tells_by_itself_is_not_told_twice() -> None:
    spec = job(env={f"V{n}": "" for n in range(21)}, framework=Framework.PYTORCH)
    assert "variables_most" not in codes(spec, QUOTA, "dlc")
