"""The layout of DESIGN section 2: imports run one way, and some things are done in one place only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

LAYERS = (
    {
        "spec",
        "states",
        "asked",
        "dialect_names",
        "facilities",
        "faults",
        "fixed_ports",
        "frames",
        "hands",
        "sftp_packets",
        "trees",
    },
    {"dialects"},
    {"jobtemplates"},
    {"backends"},
    {"models"},
    {"bus", "disk", "language", "queue", "outage", "egress"},
    {"vitals"},
    {
        "assets",
        "changes",
        "comparison",
        "dependencies",
        "messages",
        "notices",
        "ownsecrets",
        "templates",
        "transitions",
        "redaction",
        "logs",
        "logscan",
        "otherlogs",
        "retries",
        "tail",
        "uploads",
        "waiting",
    },
    {
        "services",
        "afters",
        "drafts",
        "engines",
        "extending",
        "observations",
        "others",
        "admitting",
        "entries",
        "house",
        "activity",
        "couriers",
        "forming",
        "preview",
        "ran",
        "remedies",
        "sending",
        "dryruns",
        "sshhost",
        "sshkeys",
        "sweeps",
    },
    {"trials", "reconcile", "tidy", "idle", "live", "folders"},
    {"forms", "assetforms"},
    {
        "views",
        "api",
        "gateway",
        "shells",
        "admin",
        "tasks",
        "management",
        "urls",
        "cli",
        "client",
        "templatetags",
        "apps",
    },
)
"""Inside `jobs`, a module imports only what stands further up, or beside it."""

WORKER_SIDE = {
    "trials",
    "admitting",
    "engines",
    "observations",
    "reconcile",
    "tidy",
    "idle",
    "tasks",
    "retries",
    "shells",
}
WEB_SIDE = {
    "assets",
    "assetforms",
    "services",
    "preview",
    "drafts",
    "forming",
    "forms",
    "views",
    "api",
    "gateway",
    "folders",
    "templates",
}
NO_DJANGO = LAYERS[0] | {"dialects", "jobtemplates", "backends"}


def modules(package: str) -> Iterator[tuple[str, str, Path]]:
    """Every module of a package: (dotted name, its part below the package, its file)."""
    for path in sorted((ROOT / package).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if "migrations" in parts:
            continue
        names = parts[:-1] if parts[-1] == "__init__" else parts
        yield ".".join(names), names[1] if len(names) > 1 else "", path


def imports(path: Path, *, typing_too: bool = True) -> Iterator[str]:
    """Every module that a file imports, with `from x import y` as both `x` and `x.y`."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize(("package", "forbidden"), [("quotas", ("jobs", "console")), ("jobs", ("console",))])
def test_packages_import_one_way(package: str, forbidden: tuple[str, ...]) -> None:
    wrong = [
        f"{name} imports {target}"
        for name, _part, path in modules(package)
        for target in imports(path)
        if target.split(".")[0] in forbidden
    ]
    assert not wrong


def _rank(part: str) -> int:
    for rank, layer in enumerate(LAYERS):
        if part in layer:
            return rank
    raise AssertionError(f"jobs/{part} has no layer")


def _part_of_jobs(target: str) -> str | None:
    pieces = target.split(".")
    if pieces[0] != "jobs" or len(pieces) == 1:
        return None
    there = (ROOT / "jobs" / pieces[1]).exists() or (ROOT / "jobs" / f"{pieces[1]}.py").exists()
    return pieces[1] if there else None


def test_inside_jobs_imports_run_one_way() -> None:
    wrong = []
    for name, part, path in modules("jobs"):
        for target in imports(path) if part else ():
            other = _part_of_jobs(target)
            if other is not None and _rank(other) > _rank(part):
                wrong.append(f"{name} imports {target}")
    assert not wrong


def test_the_web_side_never_imports_the_worker_side() -> None:
    wrong = [
        f"{name} imports {target}"
        for name, part, path in modules("jobs")
        if part in WEB_SIDE
        for target in imports(path)
        if target.startswith("jobs.") and target.split(".")[1] in WORKER_SIDE | {"backends"}
    ]
    assert not wrong


def test_spec_states_dialects_and_backends_import_no_django() -> None:
    wrong = [
        f"{name} imports {target}"
        for name, part, path in modules("jobs")
        if part in NO_DJANGO
        for target in imports(path)
        if target.split(".")[0] in {"django", "celery", "rest_framework"} or target.startswith("jobs.models")
    ]
    assert not wrong


def test_only_transitions_writes_a_jobs_state() -> None:
    writers = []
    for name, part, path in modules("jobs"):
        tree = ast.parse(path.read_text())
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            if not isinstance(call.func, ast.Attribute) or call.func.attr != "update":
                continue
            about_jobs = "Job.objects" in ast.unparse(call.func)
            if about_jobs and any(keyword.arg == "state" for keyword in call.keywords):
                writers.append(name)
        if part != "transitions" and "job.state = " in path.read_text():
            writers.append(name)
    assert set(writers) <= {"jobs.lifecycle.transitions"}


def test_only_the_ledger_writes_reservations() -> None:
    wrong = [
        name
        for package in ("quotas", "jobs", "console")
        for name, _part, path in modules(package)
        if name != "quotas.ledger"
        and any(
            f"Reservation.objects.{verb}" in path.read_text()
            for verb in ("create", "update_or_create", "bulk_create")
        )
    ]
    assert not wrong
