"""What becomes of a job's fields on a backend: every field has an answer, and every answer its test."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from jobs.form.applied import BACKENDS, Applied, Fate, applied
from jobs.messages.applied import FATES, WHY, applied_message
from tests.reference_pages.paths import paths

TESTS = Path(__file__).parents[2]
EVERY = [(backend, path, each) for backend, table in BACKENDS.items() for path, each in table.items()]


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_field_of_a_job_has_an_answer_on_every_backend(backend: str) -> None:
    assert [path for path, _default in paths() if applied(backend, path) is None] == []


@pytest.mark.parametrize(("backend", "path", "each"), EVERY, ids=[f"{b}-{p}" for b, p, _each in EVERY])
def test_what_is_said_to_be_done_names_a_test_that_there_is(backend: str, path: str, each: Applied) -> None:
    assert backend
    if each.fate in {Fate.HONOURED, Fate.CONSOLE}:
        assert each.test, path
    if each.test:
        file, _colons, name = each.test.partition("::")
        text = (TESTS / file).read_text(encoding="utf-8")
        names = {
            node.name
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        assert not name or name in names


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_answer_is_about_a_field_that_there_is(backend: str) -> None:
    known = {path for path, _default in paths()}
    around = {".".join(path.split(".")[:count]) for path in known for count in range(1, path.count(".") + 2)}
    assert [path for path in BACKENDS[backend] if path not in around and f"{path}[]" not in around] == []


def test_every_fate_and_every_reason_has_words() -> None:
    assert set(FATES) == {str(fate) for fate in Fate}
    assert {each.why for _backend, _path, each in EVERY if each.why} == set(WHY)
    assert applied_message("kept", "no_labels") == (
        "Kept for export, not applied here. The nodes here have no labels."
    )
    assert applied_message("kept") == "Kept for export, not applied here."
    unexplained = [path for _backend, path, each in EVERY if each.fate is Fate.KEPT and not each.why]
    assert unexplained == []


def test_a_backend_that_nobody_has_described_has_what_the_console_does() -> None:
    assert applied("nowhere", "priority") == applied("local", "priority")
    assert applied("nowhere", "grace_s") is None
