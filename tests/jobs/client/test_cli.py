"""`job-console`: job files on a command line, in a process without settings, server or database."""

import gettext
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jobs.client.cli import main
from jobs.client.job_files import check
from jobs.language import language_of

ROOT = Path(__file__).parents[3]
SEEDS = ROOT / "tests" / "data" / "seeds"
GOOD = '{"jobName": "a", "image": "i", "taskRoles": [{"name": "m", "command": "c"}]}'
BAD = """{
  // mine
  "jobName": "a b",
  "image": "i",
  "taskRoles": [{"name": "m", "command": "c", "memoryMB": 100, "shmMB": 900}],
}
"""
FIXED = BAD.replace('"a b"', '"a_b"').replace("900", "100")


def run(*arguments: str, stdin: bytes = b"", **env: str) -> subprocess.CompletedProcess[bytes]:
    """The command in a process of its own, with no settings at all."""
    program = "import sys; from jobs.client.cli import main; sys.exit(main())"
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("DJANGO_", "CONSOLE_"))
    }
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        input=stdin,
        capture_output=True,
        cwd=ROOT,
        env={**clean, **env},
        check=False,
    )


@pytest.fixture(autouse=True)
def _nobody_is_logged_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may be logged in to a console of their own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nobody"))


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "job.json"
    path.write_text(BAD)
    return path


def test_cli_module_runs_as_the_command() -> None:
    command = [sys.executable, "-m", "jobs.client.cli", "check", "-"]
    done = subprocess.run(command, input=GOOD.encode(), capture_output=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stdout.decode().splitlines()[-1]) == (0, "-: openpai-v1, ok")


def test_cli_check_accepts_good_file_without_settings() -> None:
    done = run("check", "-", "--json", stdin=GOOD.encode(), DJANGO_SETTINGS_MODULE="no.such.settings")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["file"], result["dialect"], result["ok"], result["problems"]) == (
        "-",
        "openpai-v1",
        True,
        [],
    )


@pytest.mark.parametrize("seed", ["helloworld", "jupyter"])
def test_cli_check_accepts_scm_page_files(seed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(SEEDS / f"{seed}.json")]) == 0
    assert "ok" in capsys.readouterr().out


def test_cli_check_json_reports_place_message_rule_and_fix(
    bad: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(bad), "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert not result["ok"]
    assert result["problems"][0] == {
        "pointer": "/jobName",
        "line": 3,
        "column": 14,
        "code": "bad_name",
        "message": "jobName “a b” contains invalid characters. Allowed: A-Z a-z 0-9 - . _ ~.",
        "params": {"key": "jobName", "value": "a b", "allowed": "A-Za-z0-9\\-._~"},
        "fix": {"pointer": "/jobName", "value": "a_b", "key": None},
        "source": "SCM page, OpenPAI v0.14",
        "actions": [],
    }
    assert (result["problems"][1]["line"], result["problems"][1]["column"]) == (5, 73)


def test_cli_check_json_notes_have_places(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad.write_text(GOOD.replace('"i",', '"i",\n "x": 1,'))
    assert main(["check", str(bad), "--json"]) == 0
    notes: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["notes"]
    assert [(note["line"], note["column"]) for note in notes if note["code"] == "unknown_key"] == [(2, 7)]


def test_cli_check_notes_unfilled_words_in_braces(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad.write_text(GOOD.replace('"c"', '"c {lr} {lr} ${HOME}"'))
    assert main(["check", str(bad)]) == 0
    assert capsys.readouterr().out.count("The command contains {lr}, but no sweep parameter") == 1


def test_cli_check_prints_one_line_per_finding(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(bad)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{bad}:3:14: problem: jobName “a b”")
    assert lines[0].endswith('[SCM page, OpenPAI v0.14] (fix: "a_b")')
    assert lines[-1] == f"{bad}: openpai-v1, not accepted"


def test_cli_fix_rewrites_file_and_changes_nothing_else(bad: Path) -> None:
    bad.chmod(0o640)
    assert main(["check", str(bad), "--fix"]) == 0
    assert bad.read_text() == FIXED
    assert stat.S_IMODE(bad.stat().st_mode) == 0o640
    assert list(bad.parent.iterdir()) == [bad]


def test_cli_fix_leaves_file_without_fixes_untouched(tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    path.write_text(GOOD)
    before = path.stat()
    assert main(["check", str(path), "--fix"]) == 0
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_cli_fix_writes_standard_input_to_standard_output() -> None:
    done = run("check", "-", "--fix", stdin=BAD.encode())
    assert done.returncode == 0
    assert done.stdout.decode() == FIXED
    assert b"openpai-v1, ok" in done.stderr


def test_cli_fix_continues_while_fixes_uncover_problems(tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    path.write_text(
        GOOD.replace('"command": "c"', '"command": "c", "taskNumber": 1.5, "minFailedTaskCount": 9')
    )
    assert main(["check", str(path), "--fix"]) == 0
    role = json.loads(path.read_text())["taskRoles"][0]
    assert (role["taskNumber"], role["minFailedTaskCount"]) == (2, 2)


@pytest.mark.parametrize(
    ("data", "code", "dialect"),
    [
        (b"", "empty_text", None),
        (b"hello", "unknown_dialect", None),
        (b"\xff", "not_unicode", None),
        (b"x" * (2**20 + 1), "too_large", None),
        (GOOD[:-1].encode(), "unclosed_bracket", "openpai-v1"),
    ],
)
def test_check_of_invalid_data_reports_problem_without_crash(
    data: bytes, code: str, dialect: str | None
) -> None:
    checked = check(data)
    assert ([problem.code for problem in checked.problems], checked.document.known_dialect) == (
        [code],
        dialect,
    )


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("check",),
        ("check", "/no/such/file"),
        ("check", "."),
        ("check", "-", "--dialect", "cobol"),
        ("convert", "-"),
        ("convert", "-", "--to", "cobol"),
    ],
)
def test_cli_wrong_arguments_exit_with_status_two(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stderr
    assert b"Traceback" not in done.stderr


def test_cli_convert_to_same_dialect_changes_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seed = SEEDS / "jupyter.json"
    assert main(["convert", str(seed), "--to", "openpai-v1"]) == 0
    printed = capsys.readouterr()
    assert printed.out == seed.read_text()
    assert printed.err == ""


def test_cli_convert_omits_secret_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "job.json"
    path.write_text(GOOD[:-1] + ', "jobEnvs": {"API_KEY": "k3y"}}')
    assert main(["convert", str(path), "--to", "openpai-v1"]) == 0
    assert '"API_KEY": "$SECRET:API_KEY"' in capsys.readouterr().out


def test_cli_convert_of_unreadable_file_fails(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(bad), "--to", "openpai-v1"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"{bad}:3:14:" in printed.err


def test_cli_convert_reports_losses_on_standard_error() -> None:
    text = GOOD.replace('"image": "i",', '"image": "i", "tmp": {},\n"retryCount": -2,')
    done = run("convert", "-", "--to", "aihc", stdin=text.encode())
    assert done.returncode == 0
    assert json.loads(done.stdout)["name"] == "a"
    losses = done.stderr.decode().splitlines()
    assert [line for line in losses if line.startswith("-:1:") and "/tmp" in line]
    assert [
        line for line in losses if line.startswith("-:2:") and "[not supported: automatic retries]" in line
    ]


def test_cli_messages_follow_environment_language() -> None:
    env = {"LC_ALL": "", "LC_MESSAGES": "", "LANG": "ja_JP.UTF-8"}
    done = run("check", "-", stdin=BAD.encode(), PYTHONIOENCODING="utf-8", **env)
    japanese = gettext.translation("django", ROOT / "locale", ["ja"])
    message = "%(key)s “%(value)s” contains invalid characters. Allowed: %(allowed)s."
    assert japanese.gettext(message) != message
    values = {"key": "jobName", "value": "a b", "allowed": "A-Z a-z 0-9 - . _ ~"}
    assert japanese.gettext(message) % values in done.stdout.decode()


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({}, "en"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "fr_FR.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh_Hans"),
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "ja_JP"}, "ja"),
        ({"LANG": "ja_JP", "LC_ALL": "C"}, "en"),
        ({"LANG": "ja_JP", "LC_ALL": ""}, "ja"),
    ],
)
def test_language_comes_from_first_variable_set(environment: dict[str, str], language: str) -> None:
    assert language_of(environment) == language


def test_cli_fix_renames_misspelt_key_and_leaves_unclear_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "job.json"
    text = GOOD.replace('"command": "c"', '"command": "c", "memoryMB": "8GB", "minSuceededTaskCount": 1')
    path.write_text(text)
    assert main(["check", str(path), "--fix"]) == 0
    assert path.read_text() == text.replace('"8GB"', "8192").replace("Suceeded", "Succeeded")
    path.write_text(text := text.replace("8GB", "plenty"))
    assert main(["check", str(path)]) == 1
    assert main(["check", str(path), "--fix"]) == 1
    assert path.read_text() == text
    path.write_text(text.replace('"plenty"', "8192"))
    assert main(["check", str(path)]) == 0
    assert "(fix: rename it to minSucceededTaskCount)" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        "job = {'jobName': 'a b', 'image': 'i', 'taskRoles': [{'name': 'm', 'command': 'c'}]}\n",
        "python train.py\n",
        "docker run a/b python train.py\n",
    ],
)
def test_cli_fix_leaves_file_with_more_than_a_job_unchanged(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "train.py"
    path.write_text(text)
    main(["check", str(path), "--fix"])
    assert path.read_text() == text
    told = capsys.readouterr()
    assert "contains more than a job file; not changed" in told.err
    assert "the job file" in told.out or "problem:" in told.out


def test_cli_fix_writes_pasted_command_to_standard_output() -> None:
    done = run("check", "-", "--fix", stdin=b"torchrun train.py\n")
    assert done.returncode == 0
    assert json.loads(done.stdout)["UserCommand"] == "torchrun train.py"
