"""Entering replicas on a real Slurm: in the right part of the job, with its own environment, within time."""

import asyncio
import hashlib
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.access.folders.client import FolderRefused
from jobs.backends.base import Handle, ReplicaRef
from jobs.backends.remote import attempts, session_client
from jobs.backends.sessions import Barrier, Ended, NoEntry, Session, SessionKind, SessionRequest, Terminal
from jobs.backends.slurm.handles import SlurmJob
from jobs.backends.slurm.script import job_script
from jobs.spec import Framework, Resources, SecretRef
from jobs.states import State
from tests.jobs.backends.benches import all_pids, log_of, role, text_of, wait_until_over
from tests.jobs.backends.beside import (
    REPLICA,
    beside,
    everything,
    folder_client,
    list_files,
    run,
    start,
    until,
)
from tests.jobs.backends.slurm_bench import Releasing, SlurmBench
from tests.waiting import wait_for

GPUS = Resources(cpu_milli=1000, memory_mib=64, gpus=2, gpu_type="a100")


async def test_session_command_shares_replica_environment(on_slurm: SlurmBench) -> None:
    look = "pwd; echo $PAI_JOB_NAME $RANK $TOKEN $SECRET $CUDA_VISIBLE_DEVICES $SLURMD_NODENAME; cat note"
    submission = on_slurm.submission(
        role(f"echo mine > note; {look}; exec sleep 600", resources=GPUS, env={"TOKEN": "a b"}),
        secret_env={"SECRET": SecretRef(name="s")},
        secrets={"s": "$(kept)"},
    )
    handle = on_slurm.backend.submit(submission)
    wait_for(lambda: "mine" in log_of(on_slurm.backend, handle), 60)
    env = {"CUDA_VISIBLE_DEVICES": "7", "LANG": "C"}
    said, ended = await run(on_slurm, handle, f"{look}; exit 7", env=env)
    assert said == log_of(on_slurm.backend, handle)
    assert len(said.splitlines()[1].split()[-2].split(",")) == 2
    assert ended == Ended(exit_code=7)


async def test_resubmitted_job_is_entered_by_its_new_number(on_slurm: SlurmBench) -> None:
    handle = start(on_slurm)
    sent = SlurmJob.of(handle)
    (on_slurm.attempt(handle) / "again").write_text(str(sent.number))
    forgotten = SlurmJob(sent.number + 100_000, sent.key).handle
    said, ended = await run(on_slurm, forgotten, "echo $SLURM_JOB_ID")
    assert (said, ended) == (f"{sent.number}\n", Ended(exit_code=0))


async def test_replica_is_entered_on_its_own_node(on_slurm: SlurmBench) -> None:
    wide = Resources(cpu_milli=9000, memory_mib=64)
    handle = on_slurm.backend.submit(
        on_slurm.submission(
            role("exec sleep 600", name="chief"),
            role("exec sleep 600", name="worker", replicas=2, resources=wide),
        )
    )
    wait_for(lambda: len(on_slurm.processes("sleep")) == 3, 60)
    seen = on_slurm.backend.observe([handle])
    for each in seen[handle].replicas:  # type: ignore[union-attr]
        wanted = SessionRequest(
            SessionKind.LINE, line="echo $PAI_TASK_ROLE_NAME $PAI_TASK_INDEX $SLURMD_NODENAME"
        )
        session = await on_slurm.backend.exec(handle, ReplicaRef(each.role, each.index), wanted)
        assert await everything(session) == f"{each.role} {each.index} {each.node}\n"
        await session.close()


@pytest.mark.parametrize("pid", ["mine", "", "-1", "0", "7 7", "9" * 5000, "\u0667"])
async def test_session_with_invalid_replica_pid_is_refused(on_slurm: SlurmBench, pid: str) -> None:
    handle = await asyncio.to_thread(_pretended, on_slurm, pid)
    with pytest.raises(NoEntry) as refused:
        await on_slurm.backend.exec(handle, REPLICA, SessionRequest(SessionKind.LINE, line="true"))
    assert refused.value.barrier is Barrier.NOT_RUNNING


def _pretended(bench: SlurmBench, pid: str) -> Handle:
    """A job that was never sent, of which that is written down."""
    submission = bench.submission()
    folder = attempts.attempt_folder(bench.root, submission.key)
    (folder / "run-1" / "started").mkdir(parents=True)
    (folder / "job.json").write_text(job_script.render_record(submission, bench.config, ""))
    (folder / "run-1" / "started" / "worker-0").write_text(f"cpu1 1.0 {pid}\n")
    return SlurmJob(1, submission.key).handle


async def test_slurm_script_session_runs_beside_script(on_slurm: SlurmBench) -> None:
    script = "#!/bin/bash\n#SBATCH --nodes=2\nexport MINE=1\necho up\nsleep 600\n"
    two = role(script, replicas=2, resources=Resources(cpu_milli=9000, memory_mib=64))
    handle = on_slurm.backend.submit(on_slurm.submission(two, framework=Framework.SLURM))
    wait_for(lambda: log_of(on_slurm.backend, handle), 60)
    said, _ = await run(on_slurm, handle, "pwd; echo $SLURM_JOB_NUM_NODES")
    assert said == f"{on_slurm.attempt(handle)}/run-1/work/worker-0\n2\n"


async def test_session_transfers_data_both_ways_and_may_stay_unread(on_slurm: SlurmBench) -> None:
    handle = start(on_slurm)
    much = os.urandom(3 << 20) + b"\n\xf5" * 500_000
    line = "head -c 2000000 /dev/zero >&2 & cat"
    async with beside(on_slurm, handle, SessionRequest(SessionKind.LINE, line=line)) as session:
        writing = asyncio.ensure_future(_send(session, much))
        heard = hashlib.sha256()
        while more := await session.read(65536):
            heard.update(more)
        await writing
        assert heard.digest() == hashlib.sha256(much).digest()


async def _send(session: Session, data: bytes) -> None:
    await session.write(data)
    await session.write_eof()


async def test_session_write_to_closed_input_raises_broken_pipe(on_slurm: SlurmBench) -> None:
    handle = start(on_slurm)
    async with beside(
        on_slurm, handle, SessionRequest(SessionKind.LINE, line="exec <&-; sleep 600")
    ) as session:
        with pytest.raises(BrokenPipeError):
            await asyncio.wait_for(session.write(b"x" * (4 << 20)), 60)


async def test_absent_controller_refuses_new_session_and_spares_open_one(
    on_slurm: SlurmBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = start(on_slurm)
    controller = on_slurm.slurm.running["slurmctld"]
    async with beside(on_slurm, handle, SessionRequest(SessionKind.SHELL, terminal=Terminal())) as session:
        monkeypatch.setattr(session_client, "START_TIMEOUT_S", 1.0)
        controller.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(NoEntry) as refused:
                await on_slurm.backend.exec(handle, REPLICA, SessionRequest(SessionKind.LINE, line="true"))
            assert refused.value.barrier is Barrier.ENGINE_AWAY
            await session.write(b"echo sti''ll\n")
            await until(session, "still")
        finally:
            controller.send_signal(signal.SIGCONT)


async def test_killed_srun_ends_session_and_spares_job(on_slurm: SlurmBench) -> None:
    handle = start(on_slurm)
    number = SlurmJob.of(handle).number
    wanted = SessionRequest(SessionKind.LINE, line="trap '' HUP TERM; echo up; sleep 601")
    async with beside(on_slurm, handle, wanted) as session:
        await until(session, "up")
        wait_for(lambda: len(on_slurm.processes("sleep")) == 2, 60)
        for pid in [pid for pid in all_pids() if f"--jobid={number}" in text_of(pid, "cmdline").split("\0")]:
            os.kill(pid, signal.SIGKILL)
        assert await session.wait() == Ended()
    assert on_slurm.backend.observe([handle])[handle].state is State.RUNNING  # type: ignore[union-attr]


async def test_files_are_writable_while_replica_runs_and_readable_after_end(
    on_slurm: SlurmBench,
) -> None:
    handle = start(on_slurm, "echo kept > note; echo up; exec sleep 600")
    async with folder_client(on_slurm, handle) as client:
        assert client.live
        await asyncio.to_thread(client.make_folder, ["work", "made"])
    on_slurm.backend.stop(handle, grace_s=0, signal="KILL")
    wait_until_over(on_slurm.backend, handle, 60)
    assert {"made", "note"} <= set(await list_files(on_slurm, handle))
    async with folder_client(on_slurm, handle) as client:
        assert not client.live
        with pytest.raises(FolderRefused, match="ended"):
            await asyncio.to_thread(client.make_folder, ["work", "more"])
    on_slurm.backend.forget(handle)
    with pytest.raises(NoEntry) as refused:
        await list_files(on_slurm, handle)
    assert refused.value.barrier is Barrier.GONE


async def test_session_without_python_on_nodes_reports_reason(on_slurm: SlurmBench, tmp_path: Path) -> None:
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\necho 'the nodes need Python 3.11' >&2; exit 1\n")
    old.chmod(0o755)
    handle = start(on_slurm)
    on_slurm.backend = Releasing(replace(on_slurm.config, python=str(old)))
    with pytest.raises(NoEntry) as refused:
        await on_slurm.backend.exec(handle, REPLICA, SessionRequest(SessionKind.LINE, line="true"))
    assert refused.value.barrier is Barrier.FAILED
    assert "need Python 3.11" in refused.value.detail


async def test_session_sees_mounts_of_its_replica(on_slurm: SlurmBench) -> None:
    mounted = "mount -t tmpfs own /mnt && touch /mnt/seen && echo up && exec sleep 600"
    handle = start(on_slurm, f"exec unshare --mount sh -c '{mounted}'")
    said, _ = await run(on_slurm, handle, "ls /mnt")
    assert said == "seen\n"
