"""Every test runs in some part of `make test`."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
from django.conf import settings

from console.home import CHECKOUT
from tests import run
from tests.waiting import wait_for


def files(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((CHECKOUT / folder).rglob("*.py"))]


def test_browser_tests_are_in_folders_run_with_chromium() -> None:
    started = {path for folder in run.IN_CHROMIUM.values() for path in files(folder)}
    asking = {path for path in files("tests") if "mark.browser" in path.read_text()} - {Path(__file__)}
    assert asking <= started


@pytest.mark.parametrize("folder", run.WITHOUT_DATABASE)
def test_folders_run_without_database_contain_no_database_tests(folder: str) -> None:
    """pytest-django lets no test near a database that does not ask for it by one of these."""
    there = [path for path in files(folder) if not path.is_relative_to(CHECKOUT / run.WITH_KUBERNETES)]
    assert there
    asks = ("django_db", "transactional_db", "db: None", 'usefixtures("db')
    assert [path for path in there if any(word in path.read_text() for word in asks)] == []


def test_tests_of_sqlite_alone_run_there() -> None:
    asking = {path for path in files("tests") if "mark.sqlite" in path.read_text()} - {Path(__file__)}
    kept = [CHECKOUT / name for name in run.ON_BOTH]
    assert all(path.exists() for path in kept)
    assert [path for path in asking if not any(map(path.is_relative_to, kept))] == []


def test_tests_without_database_run_on_postgres_unless_sqlite_has_them() -> None:
    """Their part runs on PostgreSQL alone; what is in ON_BOTH is run on SQLite too."""
    alone, both = "tests/test_required.py", "tests/console/test_migrations.py"
    assert both in run.ON_BOTH
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", alone, both]
    environ = {**os.environ, "DATABASE_URL": "postgres://nobody@127.0.0.1:1/nothing"}
    done = subprocess.run(command, cwd=CHECKOUT, env=environ, capture_output=True, text=True, check=True)
    assert f"{alone}::" in done.stdout
    assert f"{both}::test_database_of_the_first_state" in done.stdout
    assert f"{both}::test_squashed_migrations_lead" not in done.stdout


def test_kill_tests_are_in_folders_run_with_kills() -> None:
    killing = {path for path in files("tests") if "mark.kill" in path.read_text()} - {Path(__file__)}
    looked = [CHECKOUT / name for name in run.WITH_KILLS]
    assert [path for path in killing if not any(map(path.is_relative_to, looked))] == []


def test_client_tests_are_a_part_of_their_own() -> None:
    (part,) = (part for part in run.PARTS if part.name == "clients")
    assert files(run.WITH_CLIENTS)
    for program in ("node", "npm"):
        assert (program in part.missing()) is (shutil.which(program) is None)


def test_test_processes_have_a_console_home_of_their_own() -> None:
    assert Path(os.environ["CONSOLE_HOME"]) == settings.CONSOLE_HOME


class Ran(NamedTuple):
    """What a run came to, and what it printed."""

    code: int
    printed: str

    @property
    def unsteady(self) -> list[str]:
        lines = self.printed.splitlines()
        return [line.rpartition("::")[2] for line in lines if line.startswith("unsteady: ")]


@pytest.fixture
def ran(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """A run of parts that have these tests; they can keep something in `HERE`."""
    (tmp_path / "pytest.ini").touch()
    plain = {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_PLUGINS": "xdist.plugin",
        "PYTEST_ADDOPTS": "",
    }

    def one(path: Path, go: run.Go) -> bool:
        return go.pytest("-c", str(tmp_path / "pytest.ini"), str(path), environ=plain)

    def run_all(*parts: str) -> Ran:
        made = []
        for number, tests in enumerate(parts):
            path = tmp_path / f"test_{number}.py"
            path.write_text(f"from pathlib import Path\nHERE = Path({str(tmp_path)!r})\n{WAIT}{tests}")
            made.append(run.Part(f"part-{number}", partial(one, path)))
        return Ran(run.run(made, tmp_path / "memory"), capsys.readouterr().out)

    return run_all


WAIT = """\
import time
def wait_for(path):
    end = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end
        time.sleep(0.01)
"""


def test_failure_passing_alone_is_reported_as_unsteady(ran: Callable[..., Ran]) -> None:
    done = ran(
        "def test_it():\n    new = not (HERE / 'x').exists()\n    (HERE / 'x').touch()\n    assert not new\n"
    )
    assert done.code == 0
    assert done.unsteady == ["test_it"]


@pytest.mark.parametrize(
    "tests", ["def test_it():\n    assert False\n", "import nonsense\n"], ids=["a failure", "no test"]
)
def test_failure_repeated_alone_fails_the_run(ran: Callable[..., Ran], tests: str) -> None:
    done = ran("def test_other():\n    pass\n", tests)
    assert done.code == 1
    assert done.unsteady == []


def test_failures_in_large_number_are_not_retried(ran: Callable[..., Ran]) -> None:
    many = "".join(
        f"def test_{n}():\n    assert (HERE / 'x{n}').exists() or (HERE / 'x{n}').touch()\n" for n in range(6)
    )
    done = ran(many)
    assert done.code == 1
    assert done.unsteady == []


def test_two_parts_run_in_parallel_and_lines_name_their_part(ran: Callable[..., Ran]) -> None:
    done = ran(
        "def test_it():\n    (HERE / 'a').touch()\n    wait_for(HERE / 'b')\n",
        "def test_it():\n    (HERE / 'b').touch()\n    wait_for(HERE / 'a')\n",
    )
    assert done.code == 0
    for part in ("part-0", "part-1"):
        assert re.search(rf"^{part} +\| 1 passed", done.printed, re.MULTILINE)


def test_part_that_waits_runs_beside_two_others(tmp_path: Path) -> None:
    beside = threading.Barrier(3, timeout=60)

    def meet(_go: run.Go) -> bool:
        return beside.wait() >= 0

    waiting = run.Part("waits", meet, waits=True)
    assert run.run([run.Part("one", meet), run.Part("other", meet), waiting], tmp_path) == 0


def test_retry_starts_after_all_other_tests_have_ended(ran: Callable[..., Ran]) -> None:
    done = ran(
        "def test_it():\n    first = not (HERE / 'x').exists()\n    (HERE / 'x').touch()\n"
        "    assert not first and (HERE / 'through').exists()\n",
        "def test_it():\n    wait_for(HERE / 'x')\n    time.sleep(0.5)\n    (HERE / 'through').touch()\n",
    )
    assert done.code == 0
    assert done.unsteady == ["test_it"]


def test_process_left_running_by_a_part_does_not_delay_the_run(
    ran: Callable[..., Ran], tmp_path: Path
) -> None:
    started = "(HERE / 'pid').write_text(str(subprocess.Popen(['sleep', '600']).pid))"
    left = f"import subprocess\ndef test_it(capfd):\n    with capfd.disabled():\n        {started}\n"
    began = time.monotonic()
    try:
        assert ran(left).code == 0
        assert time.monotonic() - began < 300
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_hanging_part_is_ended_with_its_child_processes(tmp_path: Path) -> None:
    script = "import os, pathlib, subprocess, sys\n"
    script += "pathlib.Path(sys.argv[1]).write_text(str(subprocess.Popen(['sleep', '600']).pid))\n"
    script += "subprocess.run(['sleep', '600'])\n"

    def hang(go: run.Go) -> bool:
        return go.call([sys.executable, "-c", script, str(tmp_path / "pid")], {})

    assert run.run([run.Part("hangs", hang, minutes=0.1)], tmp_path) == 1
    wait_for(lambda: not runs(int((tmp_path / "pid").read_text())), 30)


def test_failed_tests_are_named_at_the_end(ran: Callable[..., Ran]) -> None:
    many = "".join(f"def test_{n}():\n    assert False\n" for n in range(6))
    [*_, last] = ran(many).printed.splitlines()
    assert last.startswith("failed: ")
    assert last.endswith("::test_5")
