"""Backend support: every field of a job has an answer, and every answer its test."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from console.documentation.reference.spec_paths import list_paths
from jobs.backends import registry
from jobs.backends.support import EVERYWHERE, Fate, Support, find_support
from jobs.messages.support import FATES, support_message

TESTS = Path(__file__).parents[2]
TABLES = {name: registry.find(name).support for name in registry.names()}
EVERY = [(backend, path, each) for backend, table in TABLES.items() for path, each in table.items()]


@pytest.mark.parametrize("backend", TABLES)
def test_support_table_covers_every_job_field(backend: str) -> None:
    assert [path for path, _default in list_paths() if find_support(TABLES[backend], path) is None] == []


@pytest.mark.parametrize(("backend", "path", "each"), EVERY, ids=[f"{b}-{p}" for b, p, _each in EVERY])
def test_support_entry_marked_honoured_names_existing_test(backend: str, path: str, each: Support) -> None:
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


@pytest.mark.parametrize("backend", TABLES)
def test_support_entries_refer_to_existing_fields(backend: str) -> None:
    known = {path for path, _default in list_paths()}
    around = {".".join(path.split(".")[:count]) for path in known for count in range(1, path.count(".") + 2)}
    assert [path for path in TABLES[backend] if path not in around and f"{path}[]" not in around] == []


def test_support_fates_have_texts_and_stored_fields_have_reasons() -> None:
    assert set(FATES) == {str(fate) for fate in Fate}
    labels = find_support(TABLES["local"], "roles[].nodes.labels")
    assert labels is not None
    assert support_message(labels.fate, labels.why) == (
        "No effect on this cluster (kept for export). Nodes on this cluster have no labels."
    )
    assert support_message("kept") == "No effect on this cluster (kept for export)."
    assert [path for _backend, path, each in EVERY if each.fate is Fate.KEPT and not each.why] == []


def test_support_without_backend_covers_only_what_console_does() -> None:
    assert find_support(EVERYWHERE, "priority") == find_support(TABLES["local"], "priority")
    assert find_support(EVERYWHERE, "grace_s") is None
