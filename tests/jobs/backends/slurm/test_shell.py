"""Pieces of shell text, as bash reads them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jobs.backends.slurm.script import shell


def run(script: str, folder: Path) -> str:
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


@pytest.mark.parametrize("below", ["", "/logs", "/a b/$HOME/it's"])
def test_path_of_working_folder_is_located_below_the_shells_folder(below: str, tmp_path: Path) -> None:
    assert run(f"printf %s {shell.locate(f'/job{below}')}", tmp_path) == f"{tmp_path}{below}"


@pytest.mark.parametrize("path", ["/jobs", "/data/a b", "s3://bucket/$x"])
def test_path_elsewhere_is_located_at_itself(path: str, tmp_path: Path) -> None:
    assert run(f"printf %s {shell.locate(path)}", tmp_path) == path


def test_printing_function_returns_text_unexpanded(tmp_path: Path) -> None:
    text = 'a "$HOME" `b`\n  \\c'
    assert run("\n".join([*shell.define_printing("told", text, "END"), "told"]), tmp_path) == f"{text}\n"


def test_function_without_lines_succeeds(tmp_path: Path) -> None:
    assert run("\n".join([*shell.define("nothing", []), "nothing && echo well"]), tmp_path) == "well\n"
