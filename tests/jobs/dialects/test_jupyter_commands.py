"""Jupyter commands that anybody could use, and what is made of them."""

import os
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.dialects import jupyter_commands
from jobs.dialects.jupyter_commands import LISTENS, PREFIX, fix_command
from tests.ports import free_port
from tests.waiting import wait_for

SEED = (
    "jupyter notebook --allow-root --no-browser --ip 0.0.0.0 --port=$PAI_CONTAINER_HOST_jupyter_PORT_LIST "
    r"--NotebookApp.token=\"\" --NotebookApp.allow_origin=\"*\" --NotebookApp.base_url=\"/\""
)
LETS_IN = "--NotebookApp.allow_remote_access=True"


def test_jupyter_command_of_scm_page_is_fixed() -> None:
    fixed = fix_command(SEED)
    assert fixed is not None
    assert fixed.command == (
        'export JUPYTER_TOKEN="$JOB_CONSOLE_ENDPOINT_TOKEN"; jupyter notebook --allow-root --no-browser '
        f"{LISTENS} --port=$PAI_CONTAINER_HOST_jupyter_PORT_LIST {LETS_IN}"
    )
    assert set(fixed.findings) == {"token_empty", "listens_everywhere", "any_origin", "literal_quotes"}


@pytest.mark.parametrize(
    ("command", "fixed"),
    [
        ("jupyter lab --LabApp.token=''", f"jupyter lab {LETS_IN} {LISTENS}"),
        ("jupyter-lab --NotebookApp.token= --ip=*", f"jupyter-lab {LETS_IN} {LISTENS}"),
        ("python3 -m notebook --NotebookApp.token ''", f"python3 -m notebook {LETS_IN} {LISTENS}"),
        ("python -m jupyter lab --NotebookApp.token=''", f"python -m jupyter lab {LETS_IN} {LISTENS}"),
        (
            "jupyter server --ServerApp.token='' --ServerApp.password=''",
            f"jupyter server --ServerApp.allow_remote_access=True {LISTENS}",
        ),
        (
            "jupyter server --IdentityProvider.token=''",
            f"jupyter server --ServerApp.allow_remote_access=True {LISTENS}",
        ),
        (
            "cd /w && exec nohup jupyter notebook --NotebookApp.token='' > log 2>&1 &",
            f"cd /w && exec nohup jupyter notebook {LETS_IN} {LISTENS} > log 2>&1 &",
        ),
        (
            'pip install jupyter && X=1 jupyter notebook --NotebookApp.token="" --NotebookApp.base_url="/a"',
            f'pip install jupyter && X=1 jupyter notebook {LETS_IN} {LISTENS} --NotebookApp.base_url="/a"',
        ),
        (
            "jupyter notebook \\\n  --NotebookApp.token='' \\\n  --ip 0.0.0.0\n",
            f"jupyter notebook \\\n  {LETS_IN} \\\n  {LISTENS}\n",
        ),
        (
            "if true; then jupyter notebook --NotebookApp.token='' --NotebookApp.disable_check_xsrf=True; fi",
            f"if true; then jupyter notebook {LETS_IN} {LISTENS}; fi",
        ),
        (
            r"jupyter notebook --NotebookApp.token=\"\" --NotebookApp.base_url=\"/a\"",
            f"jupyter notebook {LETS_IN} {LISTENS} --NotebookApp.base_url=/a",
        ),
    ],
)
def test_jupyter_fix_closes_open_server_however_started(command: str, fixed: str) -> None:
    found = fix_command(command)
    assert found is not None
    assert found.command == PREFIX + fixed
    assert "token_empty" in found.findings


def test_jupyter_fix_of_protected_server_changes_only_quotes() -> None:
    found = fix_command(r"jupyter lab --ip 0.0.0.0 --NotebookApp.token=\"abc\"")
    assert found is not None
    assert found.command == "jupyter lab --ip 0.0.0.0 --NotebookApp.token=abc"
    assert found.findings == ("literal_quotes",)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "nvidia-smi",
        "jupyter notebook --ip 0.0.0.0",
        "jupyter notebook --NotebookApp.token=abc --ip 0.0.0.0",
        "jupyter notebook --NotebookApp.token='' --NotebookApp.password=sha1:abc",
        "jupyter nbconvert --to html a.ipynb --NotebookApp.token=''",
        "pip install -q jupyter notebook --NotebookApp.token=''",
        "echo jupyter notebook --NotebookApp.token=''",
        "# jupyter notebook --NotebookApp.token=''",
        "'jupyter notebook --NotebookApp.token=",
    ],
)
def test_jupyter_fix_leaves_safe_and_other_commands_alone(command: str) -> None:
    assert fix_command(command) is None


def test_jupyter_fix_of_fixed_command_does_nothing() -> None:
    fixed = fix_command(SEED)
    assert fixed is not None
    assert fix_command(fixed.command) is None


PIECES = [*" -=.'\"\\;&|#()\n$", "jupyter notebook", " --NotebookApp.token=", " --ip ", "0.0.0.0"]


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_jupyter_fix_of_any_text_applies_at_most_once(command: str) -> None:
    fixed = fix_command(command)
    assert fixed is None or fix_command(fixed.command) is None


def work_on(command: str) -> int:
    """How many functions are called for it, those written in C too."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        fix_command(command)
    finally:
        sys.setprofile(before)
    return calls


OPEN = "jupyter notebook --NotebookApp.token='' "
HEAPS = [
    (OPEN, "word ", ""),
    (OPEN, "x", ""),
    (OPEN, "'a' ", ""),
    (OPEN, '\\"', ""),
    (OPEN, "--ip 0.0.0.0 ", ""),
    (OPEN, "# jupyter\n", ""),
    ("", "echo jupyter; ", ""),
    ("", "env ", OPEN),
    ("", "\\\n", OPEN),
    (OPEN + "'", "a ", ""),
    (OPEN + '"', '\\"', ""),
]


@pytest.mark.parametrize(("before", "piece", "after"), HEAPS)
def test_jupyter_fix_work_grows_linearly_with_text(before: str, piece: str, after: str) -> None:
    once, four_times = (work_on(before + piece * count + after) for count in (2_000, 8_000))
    assert four_times <= 4 * once + 50


@pytest.mark.parametrize("piece", ["word ", "x", "\\\n", "env "])
def test_jupyter_fix_skips_plain_words_without_extra_work(piece: str) -> None:
    few, many = (work_on(OPEN + piece * count) for count in (1_000, 200_000))
    assert many <= few + 50


def test_jupyter_name_after_too_many_words_is_not_found() -> None:
    found = fix_command("env A=1 " * (jupyter_commands.MOST_WORDS_BEFORE // 2 - 1) + OPEN)
    assert found is not None
    assert fix_command("env A=1 " * jupyter_commands.MOST_WORDS_BEFORE + OPEN) is None


def test_jupyter_fix_leaves_command_with_too_many_servers_alone() -> None:
    assert fix_command(f"{OPEN}; " * jupyter_commands.MAX_SERVERS) is not None
    assert fix_command(f"{OPEN}; " * (jupyter_commands.MAX_SERVERS + 1)) is None


# --- the fixed command in a real Jupyter ----------------------------------------------------------------


def status(port: int, path: str, host: str = "") -> int:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Host": host} if host else {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except OSError:
        return 0


@contextmanager
def running(command: str, port: int, folder: Path) -> Iterator[None]:
    env = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "PAI_CONTAINER_HOST_jupyter_PORT_LIST": str(port),
        "JOB_CONSOLE_ENDPOINT_TOKEN": "t0ken",
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["bash", "-c", command], env=env, cwd=folder, stdout=log, stderr=log, start_new_session=True
        )
        try:
            wait_for(lambda: status(port, "/api") == 200, 60)
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.mark.skipif(not shutil.which("jupyter", path=Path(sys.executable).parent), reason="no Jupyter here")
def test_jupyter_fixed_command_requires_token_from_real_server(tmp_path: Path) -> None:
    fixed = fix_command(SEED)
    assert fixed is not None
    port, gateway = free_port(), "x1.apps.localhost:8000"
    with running(fixed.command, port, tmp_path):
        assert status(port, "/api/contents") == 403
        assert status(port, "/api/contents?token=wrong") == 403
        assert status(port, "/api/contents?token=t0ken") == 200
        assert status(port, "/tree?token=t0ken", gateway) == 200, "under the gateway's host name too"
