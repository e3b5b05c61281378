"""What of the rules is told when a job is submitted."""

from __future__ import annotations

from jobs.form import rules
from jobs.form.target import JobTarget
from jobs.spec import FaultTolerance, Framework, JobSpec
from tests.jobs.form.cases.base import LINGJUN, QUOTA, job


def codes(spec: JobSpec, target: JobTarget, dialect: str) -> set[str]:
    return {note.code for note in rules.notes(spec, target, dialect)}


def test_page_rules_are_reported_only_for_dlc_jobs() -> None:
    spec = job(framework=Framework.XGBOOST)
    assert codes(spec, LINGJUN, "dlc") == codes(spec, LINGJUN, "dlc-params") == {"lingjun_frameworks"}
    assert codes(spec, LINGJUN, "openpai-v1") == set()


def test_fault_tolerance_of_the_console_itself_is_no_violation() -> None:
    spec = job(framework=Framework.PYTORCH, fault_tolerance=FaultTolerance(enabled=True))
    assert codes(spec, QUOTA, "aihc") == set()


def test_rule_reported_by_text_is_not_repeated() -> None:
    spec = job(env={f"V{n}": "" for n in range(21)}, framework=Framework.PYTORCH)
    assert "variables_most" not in codes(spec, QUOTA, "dlc")
