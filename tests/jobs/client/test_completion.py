"""Completion, in a real bash."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jobs.client.cli import main


@pytest.fixture
def script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["completion", "bash"]) == 0
    made = tmp_path / "job-console"
    made.write_text(capsys.readouterr().out)
    return made


def completed(script: Path, *words: str) -> list[str]:
    """What bash offers for the last of the words."""
    program = (
        'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _job_console; echo "${COMPREPLY[@]}"'
    )
    command = ["bash", "--norc", "-euc", program, "bash", str(script), "job-console", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["lo"], ["login", "logs"]),
        (["run", "--gp"], ["--gpus", "--gpu-type"]),
        (["convert", "x.json", "--to", "s"], ["sbatch"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["check", "jo"], []),
    ],
)
def test_bash_completion_offers_commands_options_and_formats(
    script: Path, words: list[str], offered: list[str]
) -> None:
    assert completed(script, *words) == offered


def test_bash_completion_falls_back_to_files(script: Path) -> None:
    told = subprocess.run(
        ["bash", "--norc", "-c", f'source "{script}"; complete -p job-console'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout == "complete -o default -F _job_console job-console\n"


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_scripts_of_other_shells_list_commands(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    printed = capsys.readouterr().out
    for command in ("check", "convert", "login", "run", "logs", "completion"):
        assert command in printed
    assert printed.startswith("#compdef job-console\n" if shell == "zsh" else "complete -c job-console ")


@pytest.mark.parametrize(
    "command",
    [
        "check",
        "convert",
        "run",
        "submit",
        "list",
        "status",
        "logs",
        "stop",
        "hold",
        "keep",
        "release",
        "again",
    ],
)
def test_command_help_has_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert f"\n  job-console {command}" in capsys.readouterr().out.partition("examples:")[2]
