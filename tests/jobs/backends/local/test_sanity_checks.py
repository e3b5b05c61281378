"""The sanity check of jobs of this machine: before the command, with its files and network."""

from __future__ import annotations

from collections.abc import Callable

from jobs.node.frameworks import sanity
from jobs.spec import Check, Framework
from jobs.states import State
from tests.jobs.backends.benches import LocalBench, log_of, role, wait_until_over
from tests.waiting import wait_for

CHECKED = Check(enabled=True, arguments="--sanity-check-timeout=60")


def test_replicas_check_their_nodes_before_the_command(bench_of: Callable[..., LocalBench]) -> None:
    bench = bench_of()
    two = role("echo trained", replicas=2)
    handle = bench.backend.submit(
        bench.submission(two, role("echo served", "ps"), framework=Framework.TENSORFLOW, sanity_check=CHECKED)
    )
    wait_for(lambda: "CheckInit" in log_of(bench.backend, handle))
    bench.restart_controller()  # the next one begins no check again
    seen = wait_until_over(bench.backend, handle)
    logs = [log_of(bench.backend, handle, index=index) for index in range(2)]
    assert seen.state is State.SUCCEEDED, logs
    for log in logs:
        assert log.splitlines()[-1] == "trained"
        assert log.count("CheckInit") == 1
        assert "Sanity check: TwoNodeCommCheck: Succeeded: sums over TCP, all pairs" in log
        assert "Sanity check: AllNodeCommCheck: Succeeded: all-reduce in a ring over TCP" in log
    for replica in seen.replicas:
        assert replica.sanity is not None
        assert replica.sanity["status"] == "Succeeded"
        assert [row["status"] for row in replica.sanity["phases"]] == ["Succeeded"] * 5


def test_job_whose_check_fails_starts_nowhere(bench_of: Callable[..., LocalBench]) -> None:
    bench = bench_of()
    driver = bench.judge / "nvidia-smi"
    driver.write_text("#!/bin/sh\necho 'GPU is lost'; exit 15\n")
    driver.chmod(0o755)
    command = f"touch {bench.judge}/started-$PAI_TASK_INDEX"
    lost = {"PATH": f"{bench.judge}:/usr/bin:/bin", "PAI_TASK_GPU_NUM": "1"}
    handle = bench.backend.submit(
        bench.submission(role(command), role(command, "ps", env=lost), sanity_check=CHECKED)
    )
    seen = wait_until_over(bench.backend, handle)
    assert seen.state is State.FAILED
    assert seen.replicas[0].sanity is not None
    assert [(each["check"], each["ranks"]) for each in seen.replicas[0].sanity["failed"]] == [("gpu", [1])]
    assert sanity.EXIT_CODE in {replica.exit_code for replica in seen.replicas}
    assert not list(bench.judge.glob("started-*"))
