"""`python -m console.run` for real: a folder and a port of its own, real programs, real signals."""

import os
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
import pytest

from console.configuration import keys
from console.home import CHECKOUT
from tests.ports import free_port
from tests.stack import AS_OPERATOR, Stack
from tests.waiting import wait_for

STARTS = 180  # seconds that one start may take on a busy machine
PROGRAMS = ["redis", "web", "worker-control", "worker-logs", "worker-notices", "beat", "watch"]


def run(home: Path, port: int, **more: str) -> "subprocess.Popen[str]":
    """One more start, as `make run` makes it."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("CONSOLE_")}
    return subprocess.Popen(
        [sys.executable, "-m", "console.run"],
        cwd=CHECKOUT,
        env={**environ, "CONSOLE_HOME": str(home), "PORT": str(port), **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def refusal(process: "subprocess.Popen[str]") -> str:
    """The sentence with which a start ended at once."""
    said, sentence = process.communicate(timeout=STARTS)
    assert process.returncode == 1
    assert said.removeprefix("Starting Job Console …\n") == ""
    assert sentence.startswith("Job Console cannot start. ")
    assert sentence.count("\n") == 1
    return sentence


def health(stack: Stack) -> tuple[int, dict[str, str]]:
    """The status of /healthz, and what an operator reads of each part; up to two seconds old."""
    url = f"{stack.base_url}/healthz"
    answer = httpx.get(url, headers=AS_OPERATOR, timeout=60, trust_env=False, verify=False)
    return answer.status_code, answer.json()["parts"]


def end(runner: psutil.Process, number: signal.Signals, folder: Path) -> None:
    """Send one signal to a console, and check that every program ends, Redis last."""
    running = [runner, *runner.children(recursive=True)]
    assert len(running) > len(PROGRAMS)
    runner.send_signal(number)
    assert wait_for(lambda: not any(map(lives, running)), STARTS)
    log = (folder / "supervisord.log").read_text()
    assert re.findall(r"stopped: (\S+) ", log)[-1] == "redis"


def programs_of(stack: Stack) -> list[psutil.Process]:
    return [process for process in stack.processes() if lives(process)]


def lives(process: psutil.Process) -> bool:
    """Whoever has ended may wait for its parent to be told, which is no matter of ours."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    stack = Stack()
    try:
        stack.start()
        yield stack
    finally:
        stack.remove()


@pytest.mark.once
def test_run_prints_address_and_admin_password_and_single_interrupt_ends_all() -> None:
    port = free_port()
    # A short path that is none the easier, and a name that is not its address.
    with (
        tempfile.TemporaryDirectory(prefix="c-") as folder,
        run(
            home := Path(folder) / """a 100% "home" it's""", port, CONSOLE_HOSTS=".console.example"
        ) as process,
    ):
        assert process.stdout is not None
        starting, *said = [process.stdout.readline() for _ in range(5)]
        assert starting == "Starting Job Console …\n"
        assert said[0] == f"Job Console: http://127.0.0.1:{port}\n"
        assert re.fullmatch(r"First admin: user admin, password \S{16} \(told this once\)\.\n", said[1])
        assert said[2] == f"Logs are in {home}/run.\n"
        end(psutil.Process(process.pid), signal.SIGINT, home / "run")
        rest, errors = process.communicate(timeout=STARTS)
        assert rest == "Job Console has stopped; running jobs go on.\n"
        assert errors == ""
        assert process.returncode == 0


def test_second_start_names_the_first(stack: Stack) -> None:
    pids = [stack.pid(program) for program in PROGRAMS]
    sentence = refusal(run(stack.home, free_port()))
    assert f"already runs at {stack.base_url} (process " in sentence
    assert [stack.pid(program) for program in PROGRAMS] == pids
    stack.wait_until("/healthz")  # on a busy machine a worker may once answer later than that waits


@pytest.mark.once
def test_console_in_shell_background_heeds_an_early_interrupt(tmp_path: Path) -> None:
    home = shlex.quote(str(tmp_path))
    command = f"CONSOLE_HOME={home} PORT={free_port()} exec {sys.executable} -m console.run"
    shell = ["sh", "-c", f"({command}) & echo $!; wait $!; echo $?"]
    with subprocess.Popen(shell, stdout=subprocess.PIPE, cwd=CHECKOUT, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert process.stdout.readline() == "Starting Job Console …\n"
        os.kill(pid, signal.SIGINT)
        ended = select.select([process.stdout], [], [], STARTS)[0]
        if not ended:
            os.kill(pid, signal.SIGTERM)
        assert ended
        assert process.stdout.read() == "130\n"


@pytest.mark.once
def test_run_on_a_taken_port_names_the_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"Port {port} on 127.0.0.1 cannot be used" in refusal(run(tmp_path, port))


@pytest.mark.once
def test_run_ends_at_once_on_port_of_another_starting_console(tmp_path: Path) -> None:
    with run(tmp_path / "first", port := free_port()) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "Starting Job Console …\n"
        second = tmp_path / "second"
        assert f"Port {port} on 127.0.0.1 cannot be used" in refusal(run(second, port))
        assert not list((second / "run").glob("*.process"))
        assert f"already runs at http://127.0.0.1:{port} " in refusal(run(tmp_path / "first", port))
        first.kill()


@pytest.mark.once
def test_run_in_a_read_only_folder_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)  # which means nothing to root
    home = Path("/proc/console") if os.geteuid() == 0 else tmp_path / "home"
    assert f"{home} cannot be written" in refusal(run(home, free_port()))


@pytest.mark.once
def test_run_with_an_invalid_variable_is_refused(tmp_path: Path) -> None:
    environ = {**os.environ, "CONSOLE_HOME": str(tmp_path), "PORT": "http"}
    command = [sys.executable, "-m", "console.run"]
    done = subprocess.run(command, cwd=CHECKOUT, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("Job Console cannot start. PORT must be a whole number")


@pytest.mark.once
def test_lost_keys_are_not_replaced_in_a_used_folder(tmp_path: Path) -> None:
    keys.ensure(tmp_path)
    (tmp_path / "keys" / "fernet").write_text("")
    assert "restore it from a backup" in refusal(run(tmp_path, free_port()))


def test_running_console_is_healthy_and_only_web_and_ssh_listen(stack: Stack) -> None:
    wait_for(lambda: set(health(stack)[1].values()) == {"ok"}, STARTS, interval=0.2)
    listening: set[tuple[str, int]] = set()
    for process in programs_of(stack):
        with suppress(psutil.NoSuchProcess):  # one of the short ones that it starts
            addresses = process.net_connections(kind="inet")
            listening.update(each.laddr for each in addresses if each.status == psutil.CONN_LISTEN)
    assert listening == {("127.0.0.1", stack.port), ("127.0.0.1", stack.ssh_port)}


def test_home_folder_is_readable_by_its_owner_only(stack: Stack) -> None:
    folders = [stack.home, stack.home / "run", stack.home / "keys"]
    paths = [*folders, *(path for folder in folders for path in folder.iterdir())]
    ours = [path for path in paths if path.name != "console.out"]  # the test's own
    assert [path for path in ours if path.stat().st_mode & 0o077] == []


def test_secrets_appear_in_no_argument_or_log(stack: Stack) -> None:
    whole = (path for path in (stack.home / "keys").iterdir() if not path.name.startswith("."))
    secrets = [stack.password, *(path.read_text().strip() for path in whole)]
    seen = [" ".join(process.cmdline()) for process in programs_of(stack)]
    seen += [path.read_text(errors="replace") for path in (stack.home / "run").glob("*.log")]
    assert not [secret for secret in secrets for text in seen if secret in text]


def test_admin_password_is_in_no_program_environment(stack: Stack) -> None:
    for program in PROGRAMS[1:]:  # Redis writes over its own
        environ = Path(f"/proc/{stack.pid(program)}/environ").read_text()
        assert "CONSOLE_HOME" in environ
        assert stack.password not in environ


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process be called something else")
def test_program_processes_carry_their_names(stack: Stack) -> None:
    names = {program: psutil.Process(stack.pid(program)).name() for program in PROGRAMS}
    assert names.pop("redis") in {"redis-server", "valkey-server"}
    assert names == {program: program for program in PROGRAMS[1:]}


@pytest.mark.once
def test_killed_worker_leaves_no_pool_processes(stack: Stack) -> None:
    worker = psutil.Process(stack.pid("worker-control"))
    pool = wait_for(worker.children)
    worker.kill()
    assert wait_for(lambda: not any(map(lives, pool)), STARTS)
    wait_for(lambda: stack.pid("worker-control") != worker.pid, STARTS)
    stack.wait_until("/healthz")


@pytest.mark.once
@pytest.mark.parametrize("program", PROGRAMS)
def test_killed_program_is_restarted(stack: Stack, program: str) -> None:
    killed = stack.kill(program)
    assert wait_for(lambda: stack.pid(program) != killed and stack.pid(program), STARTS) != killed
    stack.wait_until("/healthz")


@pytest.mark.once
def test_health_names_each_stopped_part(stack: Stack) -> None:
    stopped = {
        "worker-logs": "no answer",
        "beat": "no sign of life",
        "watch": "no sign of life",
        "shells": "no sign of life",
    }
    pids = [stack.pid(program) for program in stopped]
    wanted = {"ssh" if program == "shells" else program: told for program, told in stopped.items()}

    def red() -> bool:
        status, parts = health(stack)
        bad = {name: told for name, told in parts.items() if told != "ok"}
        return (status, bad) == (503, wanted)

    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        wait_for(red, STARTS, interval=0.2)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    stack.wait_until("/healthz")


def test_killed_runner_leaves_no_processes_next_start_takes_over_and_single_sigterm_ends_all() -> None:
    stack = Stack()
    try:
        stack.start()
        wait_for(lambda: "First admin" in stack.printed(), STARTS)  # every part may answer before it is told
        before = programs_of(stack)
        stack.crash()
        stack.start()
        assert wait_for(lambda: not any(map(lives, before)), STARTS)
        stack.wait_until("/healthz")  # it may have been the first start's programs that answered
        assert stack.printed().count("First admin") == 1
        running = programs_of(stack)
        pids = {process.pid for process in running}
        (runner,) = [process for process in running if process.ppid() not in pids]
        end(runner, signal.SIGTERM, stack.home / "run")
        assert wait_for(lambda: programs_of(stack) == [], STARTS)
    finally:
        stack.remove()


@pytest.mark.once
def test_unreachable_database_stops_the_start_with_a_message(tmp_path: Path) -> None:
    process = run(tmp_path, free_port(), DATABASE_URL="postgres://nobody@127.0.0.1:1/nothing")
    _, told = process.communicate(timeout=STARTS)
    assert process.returncode == 1
    assert "CommandError: The database does not answer: " in told
    assert told.endswith("cannot start. The database could not be prepared; the reason stands above.\n")
    assert "Traceback" not in told
