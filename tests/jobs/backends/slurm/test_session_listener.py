"""Doors: the way into replicas where the console can begin no step itself, on a real Slurm."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.backends.base import Handle, Observation, ReplicaRef
from jobs.backends.remote.port_agent import close_agents
from jobs.backends.sessions import Barrier, Ended, NoEntry, SessionKind, SessionRequest, Size, Terminal
from jobs.backends.slurm.config import DOOR
from jobs.backends.slurm.handles import SlurmJob
from jobs.spec import Framework, Resources
from jobs.states import Phase, State
from tests.jobs.backends.benches import log_of, role, wait_until_over
from tests.jobs.backends.beside import REPLICA, beside, enterable, everything, listening, run, start, until
from tests.jobs.backends.slurm_bench import SlurmBench, by_rest
from tests.slurm import Slurm
from tests.waiting import wait_for

SFTP_INIT, SFTP_REALPATH = 1, 16


@pytest.fixture
def by_door(tmp_path: Path, slurm: Slurm) -> Iterator[SlurmBench]:
    """A cluster that is asked by REST, on a machine that has none of Slurm's programs."""
    (tmp_path / "none").mkdir()
    made = SlurmBench(tmp_path, slurm, {**by_rest(slurm), "programs": str(tmp_path / "none")})
    assert made.config.enters == DOOR
    yield made
    made.close()


def doors(bench: SlurmBench, handle: Handle) -> list[str]:
    """The replicas that had one."""
    return sorted(path.name for path in (bench.attempt(handle) / "run-1" / "doors").glob("*-[0-9]"))


async def test_sessions_share_one_listener_opened_on_demand(by_door: SlurmBench) -> None:
    handle = start(by_door, "echo kept > note; echo up; exec sleep 600")
    assert doors(by_door, handle) == []
    said, ended = await run(by_door, handle, "pwd; cat note; exit 7")
    work = by_door.attempt(handle) / "run-1" / "work" / "worker-0"
    assert (said, ended) == (f"{work}\nkept\n", Ended(exit_code=7))
    door = (by_door.attempt(handle) / "run-1" / "doors" / "worker-0").read_text()
    shell = SessionRequest(SessionKind.SHELL, terminal=Terminal("xterm", Size(columns=91, rows=33)))
    async with beside(by_door, handle, shell) as first, beside(by_door, handle, shell) as second:
        await first.write(b"PS1=; stty size; echo d''one\n")
        assert "33 91" in await until(first, "done")
        first.resize(Size(columns=120, rows=40))
        await first.write(b"stty size\n")
        await until(first, "40 120")
        await second.write(b"exit 3\n")
        assert await second.wait() == Ended(exit_code=3)
    assert (by_door.attempt(handle) / "run-1" / "doors" / "worker-0").read_text() == door
    by_door.backend.stop(handle, grace_s=0, signal="KILL")
    assert wait_until_over(by_door.backend, handle).state is State.STOPPED
    assert not any((by_door.attempt(handle) / name).exists() for name in ("door", "door-key"))


async def test_session_transfers_data_both_ways_and_reports_leftovers(by_door: SlurmBench) -> None:
    handle = start(by_door)
    much = b"\n\xf5" * 700_000
    async with beside(
        by_door, handle, SessionRequest(SessionKind.LINE, line="sleep 602 & cat; echo end >&2")
    ) as session:

        async def send() -> None:
            await session.write(much)
            await session.write_eof()

        sending = asyncio.ensure_future(send())
        heard = b""
        while len(heard) < len(much):
            heard += await session.read(65536)
        await sending
        assert heard == much
        assert await session.read_error(100) == b"end\n"
        assert await session.wait() == Ended(exit_code=0)
        wait_for(lambda: len(by_door.processes("sleep")) == 2, 60)
    wait_for(lambda: len(by_door.processes("sleep")) == 1, 60)


async def test_listener_serves_ports_and_sftp(by_door: SlurmBench) -> None:
    handle, port = listening(by_door)
    with await enterable(by_door).connect(handle, REPLICA, "localhost", port) as made:
        assert made.getpeername()[1] == port
    with socket.create_server(("127.0.0.1", 0)) as others, pytest.raises(NoEntry) as refused:
        await enterable(by_door).connect(handle, REPLICA, "localhost", others.getsockname()[1])
    assert refused.value.barrier is Barrier.NOT_ITS_OWN
    await close_agents()
    async with beside(by_door, handle, SessionRequest(SessionKind.FILES)) as session:
        await session.write(struct.pack(">IBI", 5, SFTP_INIT, 3))
        await session.write(struct.pack(">IBII", 10, SFTP_REALPATH, 1, 1) + b".")
        said = b""
        while b"worker-0" not in said:
            more = await session.read(65536)
            assert more, said
            said += more


async def test_replica_has_own_listener_on_its_node(by_door: SlurmBench) -> None:
    wide = Resources(cpu_milli=9000, memory_mib=64)
    chief, worker = (
        role("exec sleep 600", name="chief"),
        role("exec sleep 600", name="worker", resources=wide),
    )
    handle = by_door.backend.submit(by_door.submission(chief, worker))
    wait_for(lambda: len(by_door.processes("sleep")) == 2, 60)
    seen = by_door.backend.observe([handle])[handle]
    assert isinstance(seen, Observation)
    line = "echo $PAI_TASK_ROLE_NAME $SLURMD_NODENAME"
    for each in seen.replicas:
        session = await by_door.backend.exec(
            handle, ReplicaRef(each.role, each.index), SessionRequest(SessionKind.LINE, line=line)
        )
        assert await everything(session) == f"{each.role} {each.node}\n"
        await session.close()
    assert doors(by_door, handle) == ["chief-0", "worker-0"]


async def test_session_on_node_outside_job_is_refused(by_door: SlurmBench) -> None:
    """All nodes are this machine: the other one's address would do."""
    handle, port = listening(by_door)
    assert await run(by_door, handle, "echo in") == ("in\n", Ended(exit_code=0))
    started = by_door.attempt(handle) / "run-1" / "started" / "worker-0"
    node, rest = started.read_text().split(" ", 1)
    started.write_text(f"{'cpu2' if node == 'cpu1' else 'cpu1'} {rest}")
    for entering in (
        enterable(by_door).exec(handle, REPLICA, SessionRequest(SessionKind.LINE, line="true")),
        enterable(by_door).connect(handle, REPLICA, "localhost", port),
    ):
        with pytest.raises(NoEntry) as refused:
            await entering
        assert refused.value.barrier is Barrier.NOT_RUNNING


async def test_slurm_script_has_listener_and_each_run_its_own(by_door: SlurmBench) -> None:
    script = "#!/bin/bash\n#SBATCH --requeue\nexport MINE=1\necho up $SLURM_RESTART_COUNT\nsleep 600\n"
    handle = by_door.backend.submit(by_door.submission(role(script), framework=Framework.SLURM))
    wait_for(lambda: log_of(by_door.backend, handle), 60)
    said, _ = await run(by_door, handle, "echo $SLURM_RESTART_COUNT.")
    assert said == ".\n"
    by_door.slurm.call("scontrol", "requeue", str(SlurmJob.of(handle).number))

    def waits_again() -> bool:
        seen = by_door.backend.observe([handle])[handle]
        return isinstance(seen, Observation) and seen.phase is Phase.RESTARTING

    wait_for(waits_again)
    by_door.slurm.call("scontrol", "update", f"JobId={SlurmJob.of(handle).number}", "StartTime=now")
    wait_for((by_door.attempt(handle) / "run-2" / "started" / "worker-0").exists, 120)
    wanted = SessionRequest(SessionKind.LINE, line="echo $SLURM_RESTART_COUNT.")
    session = await enterable(by_door).exec(handle, ReplicaRef("worker", 0, run=2), wanted)
    assert await everything(session) == "1.\n"
    await session.close()


async def test_job_end_ends_sessions_and_result_is_unchanged(by_door: SlurmBench) -> None:
    handle = start(by_door, "echo up; until [ -e go ]; do sleep 0.1; done; exit 0")
    wanted = SessionRequest(SessionKind.LINE, line="trap '' HUP TERM; echo in; sleep 603")
    async with beside(by_door, handle, wanted) as session:
        await until(session, "in")
        (by_door.attempt(handle) / "run-1" / "work" / "worker-0" / "go").touch()
        assert wait_until_over(by_door.backend, handle).state is State.SUCCEEDED
        assert (await session.wait()).exit_code is None
    wait_for(lambda: not by_door.live() and not by_door.processes("sleep"), 60)
