"""The process from which the console's programs are forked, and what becomes of those."""

import json
import os
import signal
import subprocess
import sys
from ast import literal_eval
from pathlib import Path

import pytest

from console.configuration import keys
from console.home import CHECKOUT

SEEN = """
import json, os, sys, threading
from console.run import child_processes
before = set(os.listdir("/proc/self/fd")), dict(os.environ)
child_processes.gather()
from django.db import connections
gathered = set(sys.modules)
import console.asgi, console.beat, console.celery, console.server.web, uvicorn
console.celery.app.loader.import_default_modules()
console.celery.app.finalize()
import jobs.management.commands.shells, jobs.management.commands.watch
print(json.dumps({
    "threads": len(threading.enumerate()),
    "connected": [each.alias for each in connections.all(initialized_only=True) if each.connection],
    "descriptors": sorted(set(os.listdir("/proc/self/fd")) - before[0]),
    "environ": sorted(name for name in os.environ if os.environ[name] != before[1].get(name)),
    "later": sorted(set(sys.modules) - gathered),
}))
"""


def python(code: str, home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environ = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=CHECKOUT,
        env={**environ, "CONSOLE_HOME": str(home), "CELERY_SKIP_CHECKS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    keys.ensure(tmp_path)
    (tmp_path / "static").mkdir()
    return tmp_path


def test_fork_parent_shares_only_modules_and_programs_import_few_more(home: Path) -> None:
    done = python(SEEN, home)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["threads"] == 1
    assert seen["connected"] == []
    assert seen["descriptors"] == []
    assert seen["environ"] == ["DJANGO_SETTINGS_MODULE"]
    programs = ["asgi", "beat", "server.certificate", "server.job_service", "server.listener", "server.web"]
    assert seen["later"] == [f"console.{name}" for name in programs]


CALL = "import sys; from console.run.child_processes import call; print(call(sys.argv[1:], lambda: None))"


@pytest.mark.parametrize(
    ("ending", "code"),
    [("", 0), ("sys.exit()", 0), ("sys.exit(7)", 7), ("sys.exit('no')", 1), ("1 / 0", 1)],
)
def test_forked_script_ends_as_under_python(home: Path, tmp_path: Path, ending: str, code: int) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"import sys\nprint(__name__, sys.argv[1:])\n{ending}\n")
    done = python(CALL, home, str(script), "a b", "%")
    assert literal_eval(done.stdout) == (code, "__main__ ['a b', '%']\n")
    assert ("no\n" in done.stderr) == ("no" in ending)
    assert ("ZeroDivisionError" in done.stderr) == ("/" in ending)


def test_forked_script_waits_for_threads_and_exit_handlers(home: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import atexit, sys, threading\n"
        "ended = threading.Event()\n"
        "threading.Thread(target=lambda: ended.wait(60) and sys.stdout.write('thread ')).start()\n"
        "atexit.register(print, 'end')\n"
        "threading.Thread(target=ended.set).start()\n"
    )
    assert python(CALL, home, str(script)).stdout == f"{(0, 'thread end' + chr(10))!r}\n"


def test_forked_module_runs_as_under_python(home: Path) -> None:
    code, told = literal_eval(python(CALL, home, "-m", "platform", "terse").stdout)
    assert (code, bool(told)) == (0, True)


SIGNALLED = """
import os, signal
from console.run.child_processes import fork
caught = []
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
    signal.signal(number, lambda number, frame: caught.append(number))
real = os.fork
def fork_and_signal():
    if (pid := real()) == 0:
        os.kill(os.getpid(), signal.SIGTERM)
    return pid
os.fork = fork_and_signal
if (pid := fork()) == 0:
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), caught, signal.pthread_sigmask(signal.SIG_BLOCK, []))
"""


def test_forked_child_ends_on_a_signal_at_its_first_moment(home: Path) -> None:
    done = python(SIGNALLED, home)
    assert done.stdout == f"{-signal.SIGTERM} [{signal.SIGCHLD.value}] set()\n", done.stderr


CONFIDED = """
import os, sys
from console.run import first_password
if sys.argv[1] == "aside":
    first_password.put_aside()
shown = open("/proc/self/environ").read()
os.environ["DJANGO_SETTINGS_MODULE"] = "console.settings"
from django.conf import settings
before = settings.CONSOLE_ADMIN_PASSWORD
if (pid := os.fork()) == 0:
    first_password.take()
    print(["correct horse" in shown, before, settings.CONSOLE_ADMIN_PASSWORD], flush=True)
    os._exit(0)
os.waitpid(pid, 0)
first_password.forget()
print([name for name in os.environ if name.startswith("CONSOLE_ADMIN")], first_password.PIPE in os.environ)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("in_a_file", [False, True], ids=["itself", "in a file"])
def test_admin_password_put_aside_is_readable_by_the_taking_child_only(
    home: Path, in_a_file: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, value = "CONSOLE_ADMIN_PASSWORD", "correct horse"
    if in_a_file:
        (home / "given").write_text(f"{value}\n")
        name, value = f"{name}_FILE", str(home / "given")
    monkeypatch.setenv(name, value)
    assert python(CONFIDED, home, "aside").stdout == "[False, '', 'correct horse']\n[] False\n"
    assert python(CONFIDED, home, "not").stdout.startswith(f"[{not in_a_file}, 'correct horse', ")


def test_missing_admin_password_file_is_reported(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSOLE_ADMIN_PASSWORD_FILE", str(home / "none"))
    done = python(CONFIDED, home, "aside")
    assert done.stderr.startswith(f"CONSOLE_ADMIN_PASSWORD_FILE names {home}/none, which cannot be read")
    assert "Traceback" not in done.stderr.partition("\n")[0]
