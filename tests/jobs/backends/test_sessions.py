"""What every way into a running replica promises (`jobs.backends.sessions`), whatever its engine."""

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import ReplicaRef
from jobs.backends.remote.port_agent import close_agents
from jobs.backends.sessions import Barrier, Ended, NoEntry, SessionKind, SessionRequest, Size, Terminal
from jobs.node.sandbox.isolation import Isolation
from jobs.states import State
from tests.jobs.backends.benches import Bench, LocalBench, role, wait_until_over
from tests.jobs.backends.beside import REPLICA, beside, enterable, everything, listening, start, until
from tests.jobs.backends.slurm_bench import SlurmBench
from tests.waiting import wait_for

LOCAL: dict[str, dict[str, Any]] = {
    "persons": {},
    "namespaces": {"isolation": Isolation.NAMESPACES},
    "none": {"isolation": Isolation.NONE},
    "watchdog": {"limits": "watchdog"},
    "watchdog-none": {"limits": "watchdog", "isolation": Isolation.NONE},
}


@pytest.fixture(params=[*LOCAL, "slurm"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    made: Bench
    if request.param == "slurm":
        made = SlurmBench(tmp_path, request.getfixturevalue("slurm"))
    elif os.geteuid() != 0 and request.param == "persons":
        pytest.skip("user ids for every person need root")
    else:
        made = LocalBench(tmp_path, LOCAL[request.param])
    yield made
    made.close()


async def test_session_program_has_separate_stderr_and_end_of_input(bench: Bench) -> None:
    handle = start(bench)
    async with beside(
        bench, handle, SessionRequest(SessionKind.PROGRAM, argv=("sh", "-c", "cat; echo bad >&2"))
    ) as session:
        await session.write("中文\n".encode())
        await session.write_eof()
        assert await everything(session) == "中文\n"
        assert await session.read_error(100) == b"bad\n"
        assert await session.wait() == Ended(exit_code=0)


async def test_session_arguments_are_not_expanded_by_any_shell(bench: Bench, tmp_path: Path) -> None:
    handle = start(bench)
    argument = "$(touch pwned); `id` \"'\n"
    async with beside(
        bench, handle, SessionRequest(SessionKind.PROGRAM, argv=("printf", "%s", argument))
    ) as session:
        assert await everything(session) == argument


async def test_shell_session_terminal_can_be_resized(bench: Bench) -> None:
    handle = start(bench)
    terminal = Terminal("xterm", Size(columns=91, rows=33))
    async with beside(bench, handle, SessionRequest(SessionKind.SHELL, terminal=terminal)) as session:
        await session.write(b"PS1=; tty; stty size; echo $TERM, done\n")
        said = await until(session, "xterm, done")
        assert "33 91" in said
        assert "/dev/pts/" in said
        session.resize(Size(columns=120, rows=40))
        await session.write(b"stty size\n")
        await until(session, "40 120")
        await session.write(b"exit 3\n")
        assert await session.wait() == Ended(exit_code=3)


async def test_session_signal_reaches_foreground_process(bench: Bench) -> None:
    handle = start(bench)
    async with beside(bench, handle, SessionRequest(SessionKind.SHELL, terminal=Terminal())) as session:
        loop = b"""sh -c 'trap "echo caught" INT; echo "re"ady; while :; do sleep 0.1; done'\n"""
        await session.write(loop)
        await until(session, "ready")
        session.signal("INT")
        session.signal("no such signal")
        await until(session, "caught")
    async with beside(
        bench, handle, SessionRequest(SessionKind.LINE, line="echo up; exec sleep 600")
    ) as session:
        await until(session, "up")
        session.signal("TERM")
        assert await session.wait() == Ended(signal="TERM")


async def test_session_close_ends_its_processes_and_leaves_job_running(bench: Bench) -> None:
    handle = start(bench)
    before = len(bench.processes())
    async with beside(bench, handle, SessionRequest(SessionKind.SHELL, terminal=Terminal())) as session:
        await session.write(b"setsid sleep 601 & (trap '' HUP; sleep 602) & echo star''ted; sleep 603\n")
        await until(session, "started")
        wait_for(lambda: len(bench.processes("sleep")) >= 4, 60)
    wait_for(lambda: len(bench.processes()) == before, 60)
    assert bench.backend.observe([handle])[handle].state is State.RUNNING  # type: ignore[union-attr]


async def test_session_background_process_survives_line_until_close(bench: Bench) -> None:
    handle = start(bench)
    line = "sleep 601 >/dev/null 2>&1 </dev/null & echo gone"
    async with beside(bench, handle, SessionRequest(SessionKind.LINE, line=line)) as session:
        assert await everything(session) == "gone\n"
        assert await session.wait() == Ended(exit_code=0)
        wait_for(lambda: len(bench.processes("sleep")) == 2, 60)
    wait_for(lambda: len(bench.processes("sleep")) == 1, 60)


async def test_session_ends_with_its_job_without_keeping_job_alive(bench: Bench) -> None:
    handle = start(bench)
    async with beside(
        bench, handle, SessionRequest(SessionKind.LINE, line="trap '' HUP TERM; echo up; sleep 600")
    ) as session:
        await until(session, "up")
        bench.backend.stop(handle, grace_s=0, signal="KILL")
        seen = await asyncio.to_thread(wait_until_over, bench.backend, handle)
        assert seen.state is State.STOPPED
        async with asyncio.timeout(60):
            await session.wait()
            await everything(session)
    assert not bench.processes("sleep")


async def test_session_is_refused_where_replica_is_not_running(bench: Bench) -> None:
    handle = bench.backend.submit(bench.submission(role("true")))
    wait_until_over(bench.backend, handle)
    with pytest.raises(NoEntry) as refused:
        await enterable(bench).exec(handle, REPLICA, SessionRequest(SessionKind.SHELL))
    assert refused.value.barrier is Barrier.NOT_RUNNING
    handle = start(bench)
    for replica in (ReplicaRef("worker", 1), ReplicaRef("other", 0), ReplicaRef("worker", 0, run=2)):
        with pytest.raises(NoEntry):
            await enterable(bench).exec(handle, replica, SessionRequest(SessionKind.SHELL))
    with pytest.raises(NoEntry) as refused:
        await enterable(bench).exec(
            handle, REPLICA, SessionRequest(SessionKind.PROGRAM, argv=("no-such-program",))
        )
    assert refused.value.barrier is Barrier.NO_PROGRAM


async def test_connect_reaches_only_ports_the_replica_listens_on(bench: Bench) -> None:
    handle, port = listening(bench)
    other, others_port = listening(bench)
    for each, host, number in ((handle, "localhost", port), (other, "127.0.0.1", others_port)):
        with await enterable(bench).connect(each, REPLICA, host, number) as made:
            assert made.getpeername() == ("127.0.0.1", number)
            assert not made.getblocking()
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
                await enterable(bench).connect(handle, REPLICA, host, number)
            assert refused.value.barrier is Barrier.NOT_ITS_OWN
    await close_agents()
