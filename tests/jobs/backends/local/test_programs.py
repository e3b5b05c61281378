"""Which programs jobs find: what they could not start is not told to be there."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.backends.base import PROGRAMS
from jobs.backends.local import machine
from jobs.node.sandbox.isolation import Isolation
from tests.jobs.backends.benches import LocalBench


@pytest.fixture
def tools(place: Path) -> Path:
    folder = place / "tools"
    folder.mkdir()
    folder.chmod(0o755)
    for name, mode in (("jupyter-lab", 0o755), ("tensorboard", 0o644), ("code-server", 0o700)):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(mode)
    return folder


def found(path: Path, mode: Isolation, home: Path = Path("/nowhere")) -> tuple[str, ...]:
    return machine.find_programs(PROGRAMS, f"relative:{path}:/not/there", mode, home)


def test_program_not_executable_by_job_user_is_not_found(tools: Path) -> None:
    assert found(tools, Isolation.PERSONS) == ("jupyter-lab",)
    assert found(tools, Isolation.NONE) == ("code-server", "jupyter-lab")


def test_program_in_inaccessible_folder_is_not_found(tools: Path) -> None:
    tools.chmod(0o700)
    assert found(tools, Isolation.PERSONS) == ()


def test_program_in_hidden_folder_is_not_found_even_by_link(tools: Path, place: Path) -> None:
    (place / "links").mkdir()
    (place / "links" / "jupyter-lab").symlink_to(tools / "jupyter-lab")
    for mode in (Isolation.PERSONS, Isolation.NAMESPACES):
        assert found(tools, mode, home=tools) == ()
        assert found(place / "links", mode, home=tools) == ()


def test_inventory_lists_available_programs(local: LocalBench) -> None:
    (node,) = local.backend.inventory().nodes
    assert node.programs is not None
    assert set(node.programs) <= set(PROGRAMS)
