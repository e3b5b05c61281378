"""What import-linter does not know: some things are done in one place only, and some need nothing of ours."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST_MODULES = 12
"""Directly in one of the three packages; more of them belong into packages of their own."""


def modules(package: str) -> Iterator[tuple[str, Path]]:
    """Yield the dotted name and the file of every module of a package."""
    for path in sorted((ROOT / package).rglob("*.py")):
        names = path.relative_to(ROOT).with_suffix("").parts
        if "migrations" not in names:
            yield ".".join(names).removesuffix(".__init__"), path


def test_node_modules_import_with_the_standard_library_alone() -> None:
    names = [name for name, _path in modules("jobs") if name.split(".")[1:2] == ["node"]]
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom importlib import import_module\n"
    program += "for name in sys.argv[1:]: import_module(name)\n"
    program += (
        "print({each.partition('.')[0] for each in sys.modules} - {*sys.stdlib_module_names, '__main__'})"
    )
    command = [sys.executable, "-I", "-S", "-c", program, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "{'jobs'}\n"


def test_job_state_is_written_only_by_transitions() -> None:
    writers = []
    for name, path in modules("jobs"):
        tree = ast.parse(path.read_text())
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            if not isinstance(call.func, ast.Attribute) or call.func.attr != "update":
                continue
            about_jobs = "Job.objects" in ast.unparse(call.func)
            if about_jobs and any(keyword.arg == "state" for keyword in call.keywords):
                writers.append(name)
        if name != "jobs.lifecycle.transitions" and "job.state = " in path.read_text():
            writers.append(name)
    assert set(writers) <= {"jobs.lifecycle.transitions"}


def test_reservations_are_written_only_by_the_ledger() -> None:
    wrong = [
        name
        for package in ("quotas", "jobs", "console")
        for name, path in modules(package)
        if name != "quotas.ledger.reservations"
        and any(
            f"Reservation.objects.{verb}" in path.read_text()
            for verb in ("create", "update_or_create", "bulk_create")
        )
    ]
    assert not wrong


@pytest.mark.parametrize("package", ["console", "jobs", "quotas"])
def test_root_of_package_has_at_most_a_dozen_modules(package: str) -> None:
    found = sorted(path.name for path in (ROOT / package).glob("*.py") if path.name != "__init__.py")
    assert len(found) <= MOST_MODULES, found
