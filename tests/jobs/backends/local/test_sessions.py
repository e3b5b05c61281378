"""Sessions beside a running replica: where they are, what they may, and that nothing of them stays."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import Capability, Handle, TaskRef
from jobs.backends.local import cgroups
from jobs.backends.local.isolation import Isolation
from jobs.backends.sessions import Barrier, Ended, Kind, NoEntry, Session, Size, Terminal, Wanted
from jobs.spec import Resources
from jobs.states import ReasonCode, State
from tests.jobs.backends.benches import CHECKOUT, LocalBench, log_of, role, wait_until_over
from tests.jobs.backends.local.images import IMAGE
from tests.waiting import wait_for

MODES: dict[str, dict[str, Any]] = {
    "persons": {},
    "namespaces": {"isolation": Isolation.NAMESPACES},
    "none": {"isolation": Isolation.NONE},
    "watchdog": {"limits": "watchdog"},
    "watchdog-none": {"limits": "watchdog", "isolation": Isolation.NONE},
}
TASK = TaskRef("worker", 0)
ROOM = Resources(cpu_milli=1000, memory_mib=256)


@pytest.fixture(params=MODES)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalBench]:
    if os.geteuid() != 0 and request.param == "persons":
        pytest.skip("user ids for every person need root")
    made = LocalBench(tmp_path, MODES[request.param])
    yield made
    made.close()


@pytest.fixture
def contained(tmp_path: Path, store: tuple[str, ...]) -> Iterator[LocalBench]:
    made = LocalBench(tmp_path, {"engine": "podman", "engine_options": store})
    yield made
    made.close()


def start(bench: LocalBench, command: str = "echo up; exec sleep 600", **more: Any) -> Handle:
    """A job that has said something."""
    handle = bench.backend.submit(bench.submission(role(command, **{"resources": ROOM, **more})))
    wait_for(lambda: log_of(bench.backend, handle))
    return handle


@asynccontextmanager
async def beside(bench: LocalBench, handle: Handle, wanted: Wanted) -> AsyncIterator[Session]:
    session = await bench.backend.exec(handle, TASK, wanted)
    try:
        yield session
    finally:
        await session.close()


async def everything(session: Session) -> str:
    said = b""
    while more := await session.read(65536):
        said += more
    return said.decode()


async def until(session: Session, text: str) -> str:
    """What it says up to and with `text`."""
    said = ""
    async with asyncio.timeout(10):
        while text not in said:
            more = await session.read(65536)
            assert more, said
            said += more.decode()
    return said


async def run(bench: LocalBench, handle: Handle, line: str, **more: Any) -> tuple[str, Ended]:
    async with beside(bench, handle, Wanted(Kind.LINE, line=line, **more)) as session:
        return await everything(session), await session.wait()


async def test_a_line_runs_as_the_jobs_user_in_its_folder_and_environment(bench: LocalBench) -> None:
    assert Capability.EXEC in bench.backend.capabilities
    look = "id -u; pwd; echo $PAI_JOB_NAME $TOKEN $HOME; cat note; umask; "
    look += "grep -E '^(NoNewPrivs|CapEff)' /proc/self/status"
    handle = start(bench, f"echo mine > note; ({look}); exec sleep 600", env={"TOKEN": "t"})
    wait_for(lambda: "NoNewPrivs" in log_of(bench.backend, handle))
    said, ended = await run(bench, handle, f"{look}; exit 7")
    assert said == log_of(bench.backend, handle)
    assert ended == Ended(exit_code=7)


async def test_a_session_sees_the_processes_of_the_job_and_counts_as_one_of_them(bench: LocalBench) -> None:
    handle = start(bench)
    said, _ = await run(bench, handle, "cat /proc/self/cgroup; echo; ps ax -o comm,pid")
    groups, processes = said.split("\n\n")
    assert "sleep" in processes
    if bench.config.limits != "watchdog" and cgroups.usable():
        assert f"memory:/job-console/{handle}.worker-0" in groups or f"/job-console/{handle}" in groups


async def test_output_and_errors_are_two_streams_and_input_has_an_end(bench: LocalBench) -> None:
    handle = start(bench)
    async with beside(bench, handle, Wanted(Kind.PROGRAM, argv=("sh", "-c", "cat; echo bad >&2"))) as session:
        await session.write("中文\n".encode())
        await session.write_eof()
        assert await everything(session) == "中文\n"
        assert await session.read_error(100) == b"bad\n"
        assert await session.wait() == Ended(exit_code=0)


async def test_nothing_of_a_line_is_read_by_any_shell_but_the_jobs_own(
    bench: LocalBench, tmp_path: Path
) -> None:
    handle = start(bench)
    argument = "$(touch pwned); `id` \"'\n"
    async with beside(bench, handle, Wanted(Kind.PROGRAM, argv=("printf", "%s", argument))) as session:
        assert await everything(session) == argument


async def test_a_shell_has_a_terminal_with_a_size_that_changes(bench: LocalBench) -> None:
    handle = start(bench)
    terminal = Terminal("xterm", Size(columns=91, rows=33))
    began = time.monotonic()
    async with beside(bench, handle, Wanted(Kind.SHELL, terminal=terminal)) as session:
        await session.write(b"PS1=; tty; stty size; echo $TERM, done\n")
        said = await until(session, "xterm, done")
        assert time.monotonic() - began < 2
        assert "33 91" in said
        assert "/dev/pts/" in said
        session.resize(Size(columns=120, rows=40))
        await session.write(b"stty size\n")
        await until(session, "40 120")
        await session.write(b"exit 3\n")
        assert await session.wait() == Ended(exit_code=3)


async def test_a_signal_reaches_what_is_in_the_foreground(bench: LocalBench) -> None:
    handle = start(bench)
    async with beside(bench, handle, Wanted(Kind.SHELL, terminal=Terminal())) as session:
        loop = b"""sh -c 'trap "echo caught" INT; echo "re"ady; while :; do sleep 0.1; done'\n"""
        await session.write(loop)
        await until(session, "ready")
        session.signal("INT")
        session.signal("no such signal")
        await until(session, "caught")
    async with beside(bench, handle, Wanted(Kind.LINE, line="echo up; exec sleep 600")) as session:
        await until(session, "up")
        session.signal("TERM")
        assert await session.wait() == Ended(signal="TERM")


async def test_closing_ends_all_that_was_started_and_leaves_the_job_alone(bench: LocalBench) -> None:
    handle = start(bench)
    before = len(bench.processes())
    async with beside(bench, handle, Wanted(Kind.SHELL, terminal=Terminal())) as session:
        await session.write(b"setsid sleep 601 & (trap '' HUP; sleep 602) & echo star''ted; sleep 603\n")
        await until(session, "started")
        wait_for(lambda: len(bench.processes("sleep")) >= 4)
    wait_for(lambda: len(bench.processes()) == before)
    assert bench.backend.observe([handle])[handle].state is State.RUNNING  # type: ignore[union-attr]


async def test_the_background_outlives_the_line_until_the_session_is_closed(bench: LocalBench) -> None:
    handle = start(bench)
    line = "sleep 601 >/dev/null 2>&1 </dev/null & echo gone"
    async with beside(bench, handle, Wanted(Kind.LINE, line=line)) as session:
        assert await everything(session) == "gone\n"
        assert await session.wait() == Ended(exit_code=0)
        wait_for(lambda: len(bench.processes("sleep")) == 2)
    wait_for(lambda: len(bench.processes("sleep")) == 1)


async def test_a_session_ends_with_its_job_and_does_not_keep_it(bench: LocalBench) -> None:
    handle = start(bench)
    async with beside(
        bench, handle, Wanted(Kind.LINE, line="trap '' HUP TERM; echo up; sleep 600")
    ) as session:
        await until(session, "up")
        bench.backend.stop(handle, grace_s=0, signal="KILL")
        seen = await asyncio.to_thread(wait_until_over, bench.backend, handle)
        assert seen.state is State.STOPPED
        async with asyncio.timeout(5):
            await session.wait()
            await everything(session)
    assert not bench.processes("sleep")


async def test_a_replica_that_is_not_running_is_not_entered(bench: LocalBench) -> None:
    handle = bench.backend.submit(bench.submission(role("true")))
    wait_until_over(bench.backend, handle)
    with pytest.raises(NoEntry) as refused:
        await bench.backend.exec(handle, TASK, Wanted(Kind.SHELL))
    assert refused.value.barrier is Barrier.NOT_RUNNING
    handle = start(bench)
    for task in (TaskRef("worker", 1), TaskRef("other", 0), TaskRef("worker", 0, run=2)):
        with pytest.raises(NoEntry):
            await bench.backend.exec(handle, task, Wanted(Kind.SHELL))
    with pytest.raises(NoEntry) as refused:
        await bench.backend.exec(handle, TASK, Wanted(Kind.PROGRAM, argv=("no-such-program",)))
    assert refused.value.barrier is Barrier.NO_PROGRAM


async def test_what_a_session_uses_counts_against_the_jobs_limit(bench: LocalBench) -> None:
    handle = start(bench)
    hoard = "x = bytearray(400 << 20); x[::4096] = bytes(len(x[::4096])); import time; time.sleep(60)"
    async with beside(bench, handle, Wanted(Kind.PROGRAM, argv=("python3", "-c", hoard))):
        seen = await asyncio.to_thread(wait_until_over, bench.backend, handle, 30)
    assert seen.reason.code is ReasonCode.OUT_OF_MEMORY


SERVE = """
import asyncio, json, os, sys
from pathlib import Path
from jobs.backends.base import Handle, TaskRef
from jobs.backends.local.backend import LocalBackend
from jobs.backends.local.config import LocalConfig
from jobs.backends.sessions import Kind, Terminal, Wanted

async def main():
    root, handle, mode = sys.argv[1:]
    backend = LocalBackend(LocalConfig(root=Path(root), hide=Path(root)))
    session = await backend.exec(
        Handle(handle), TaskRef("worker", 0), Wanted(Kind.SHELL, terminal=Terminal())
    )
    await session.write(b"(trap '' HUP TERM; sleep 601) & sleep 602\\n")
    print("up", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_a_killed_console_leaves_no_session_and_the_job_unharmed(bench: LocalBench) -> None:
    handle = start(bench)
    before = len(bench.processes())
    command = [sys.executable, "-c", SERVE, str(bench.config.root), handle, ""]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE) as console:
        assert console.stdout is not None
        assert console.stdout.readline() == b"up\n"
        wait_for(lambda: len(bench.processes("sleep")) >= 3)
        console.kill()
        console.wait()
    wait_for(lambda: not [pid for pid in bench.processes("sleep") if _argument(pid) != "600"])
    wait_for(lambda: len(bench.processes()) == before)
    assert bench.backend.observe([handle])[handle].state is State.RUNNING  # type: ignore[union-attr]


def _argument(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1].decode()
    return "600"


async def test_a_killed_supervisor_ends_neither_job_nor_session(bench: LocalBench) -> None:
    handle = start(bench)
    async with beside(bench, handle, Wanted(Kind.SHELL, terminal=Terminal())) as session:
        bench.restart_controller()
        wait_for(lambda: bench.backend.find([handle])[handle])
        await session.write(b"echo sti''ll\n")
        await until(session, "still")


async def test_a_killed_wrapper_takes_its_sessions_with_it(bench: LocalBench) -> None:
    handle = start(bench)
    async with beside(bench, handle, Wanted(Kind.LINE, line="echo up; sleep 601")) as session:
        await until(session, "up")
        for pid in bench.processes("jc-wrapper"):
            os.kill(pid, signal.SIGKILL)
        await asyncio.to_thread(wait_until_over, bench.backend, handle)
    wait_for(lambda: not bench.processes("sleep"))


LISTEN = (
    "import socket, time; s = socket.socket({family}); s.bind(('{address}', 0)); s.listen(); "
    "print(s.getsockname()[1], flush=True); time.sleep(600)"
)


def _listening(bench: LocalBench, address: str = "127.0.0.1") -> tuple[Handle, int]:
    family = "socket.AF_INET6" if ":" in address else ""
    handle = start(bench, f'exec python3 -c "{LISTEN.format(family=family, address=address)}"')
    return handle, int(log_of(bench.backend, handle))


async def test_only_what_the_replica_itself_listens_on_is_reached(bench: LocalBench) -> None:
    handle, port = _listening(bench)
    other, others_port = _listening(bench)
    assert await bench.backend.reach(handle, TASK, "localhost", port) == ("127.0.0.1", port)
    assert await bench.backend.reach(other, TASK, "127.0.0.1", others_port) == ("127.0.0.1", others_port)
    with socket.create_server(("127.0.0.1", 0)) as database:
        forbidden = [
            ("127.0.0.1", database.getsockname()[1]),
            ("127.0.0.1", others_port),
            ("169.254.169.254", port),
            ("169.254.169.254", 80),
            ("example.org", port),
            ("0.0.0.0", port),
            ("localhost", port + 65536),
        ]
        for host, number in forbidden:
            with pytest.raises(NoEntry) as refused:
                await bench.backend.reach(handle, TASK, host, number)
            assert refused.value.barrier is Barrier.NOT_ITS_OWN


async def test_a_port_of_one_address_does_not_open_that_of_another(bench: LocalBench) -> None:
    """The job listens on 127.0.0.2 with the number at which something else is on 127.0.0.1."""
    handle, port = _listening(bench, "127.0.0.2")
    with socket.create_server(("127.0.0.1", port)):
        assert await bench.backend.reach(handle, TASK, "127.0.0.1", port) == ("127.0.0.2", port)


async def test_a_session_in_a_container_is_in_the_container(contained: LocalBench) -> None:
    handle = start(contained, "echo up; exec sleep 600", image=IMAGE, env={"TOKEN": "t"})
    look = "cat /etc/marker; id -u; pwd; echo $TOKEN $HOME; echo $PATH | grep -c bin; "
    look += "ls /work 2>&1 | head -1; exit 4"
    said, ended = await run(contained, handle, look)
    lines = said.splitlines()
    assert lines[:5] == ["inside", str(contained.config.uid_base + 7), "/job", "t /job", "1"]
    assert "No such file" in lines[5]
    assert ended == Ended(exit_code=4)
    async with beside(contained, handle, Wanted(Kind.SHELL, terminal=Terminal())) as session:
        await session.write(b"(trap '' HUP; sleep 601) & cat /proc/self/cgroup; echo do''ne\n")
        said = await until(session, "done")
        assert handle in said
    wait_for(lambda: len(contained.processes("sleep")) == 1)
