"""What every backend promises (DESIGN section 4), whatever its engine."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.backends.base import Gone, Handle, LogState, NotSubmitted, Observation, Refused, ReplicaRef, Unknown
from jobs.spec import JobSpec
from jobs.states import TERMINAL, Phase, ReasonCode, ReplicaState, State
from tests.jobs.backends.benches import Bench, log_of, replica, role, wait_until_over
from tests.waiting import wait_for

NOBODY = Handle("bench-nobody-1")


def test_job_run_reports_its_end_with_exit_code(bench: Bench) -> None:
    handle = bench.backend.submit(bench.submission(role("echo out; echo err >&2; exit 3")))
    seen = wait_until_over(bench.backend, handle)
    assert seen.state is State.FAILED
    assert seen.phase is Phase.ENDED
    assert seen.reason.code is ReasonCode.EXIT_CODE
    assert seen.reason.params == {"role": "worker", "index": 0, "exit_code": 3}
    one = replica(seen)
    assert (one.state, one.exit_code, one.signal) == (ReplicaState.FAILED, 3, None)
    assert one.started_at is not None
    assert one.ended_at is not None
    assert one.started_at <= one.ended_at
    assert log_of(bench.backend, handle) == "out\nerr\n"


def test_submit_twice_starts_job_once(bench: Bench) -> None:
    submission = bench.submission(role("echo started; sleep 0.3"))
    first = bench.backend.submit(submission)
    assert bench.backend.submit(submission) == first
    wait_until_over(bench.backend, first)
    assert bench.backend.submit(submission) == first
    assert log_of(bench.backend, first) == "started\n"
    assert bench.backend.find([submission.key])[submission.key] == [first]


def test_submit_paused_midway_starts_nothing_twice(bench: Bench, tmp_path: Path) -> None:
    faults = tmp_path / "faults"
    faults.mkdir()
    for point in bench.faults_on_the_way():
        submission = bench.submission(role("echo started"))
        (faults / point).write_text("STOP")
        frozen = bench.submit_in_another_process(submission, faults)
        wait_for(lambda: list(faults.glob("*.taken.*")))
        try:
            mine = bench.backend.submit(submission)
        except Unknown:
            mine = None
        frozen.thaw()
        theirs = frozen.answer()
        assert mine in (theirs, None), point
        assert bench.backend.find([submission.key])[submission.key] == [theirs]
        wait_until_over(bench.backend, theirs)
        assert log_of(bench.backend, theirs) == "started\n", point
        for taken in faults.iterdir():
            taken.unlink()


def test_find_of_unsubmitted_key_returns_nothing(bench: Bench) -> None:
    assert bench.backend.find([NOBODY, "bench-other-2"]) == {NOBODY: [], "bench-other-2": []}


def test_unknown_handle_is_gone(bench: Bench) -> None:
    handle = bench.backend.submit(bench.submission())
    seen = bench.backend.observe([NOBODY, handle])
    assert seen[NOBODY] is Gone.GONE
    assert isinstance(seen[handle], Observation)
    assert bench.backend.read_log(NOBODY, ReplicaRef("worker", 0), "", 10).state is LogState.GONE
    wait_until_over(bench.backend, handle)


def test_stop_repeated_ends_job_once_and_unknown_handle_is_ignored(bench: Bench) -> None:
    bench.backend.stop(NOBODY, grace_s=1, signal="TERM")
    handle = bench.backend.submit(bench.submission(role("echo up; sleep 60")))
    wait_for(lambda: log_of(bench.backend, handle))
    bench.backend.stop(handle, grace_s=20, signal="TERM")
    bench.backend.stop(handle, grace_s=20, signal="TERM")
    seen = wait_until_over(bench.backend, handle)
    assert seen.state is State.STOPPED
    assert replica(seen).state is ReplicaState.STOPPED
    bench.backend.stop(handle, grace_s=0, signal="TERM")
    assert bench.backend.observe([handle])[handle] == seen


def test_stop_kills_process_ignoring_signal_after_grace_period(bench: Bench) -> None:
    handle = bench.backend.submit(
        bench.submission(role("trap '' TERM; echo up; while :; do sleep 0.1; done"))
    )
    wait_for(lambda: log_of(bench.backend, handle))
    bench.backend.stop(handle, grace_s=1, signal="TERM")
    seen = wait_until_over(bench.backend, handle)
    assert seen.state is State.STOPPED
    assert replica(seen).exit_code == 137


def test_log_read_from_any_cursor_has_no_gap_and_no_repeat(bench: Bench) -> None:
    command = "for i in $(seq 300); do echo line $i; [ $((i % 60)) = 0 ] && sleep 0.05; done; exit 0"
    handle = bench.backend.submit(bench.submission(role(command)))
    replica = ReplicaRef("worker", 0)
    cursor, data, cursors = "", b"", [("", 0)]

    def read_on() -> bool:
        nonlocal cursor, data
        part = bench.backend.read_log(handle, replica, cursor, 97)
        cursor, data = part.cursor, data + part.data
        cursors.append((cursor, len(data)))
        return part.state is LogState.COMPLETE

    wait_for(read_on, interval=0.001)
    whole = "".join(f"line {number}\n" for number in range(1, 301)).encode()
    assert data == whole
    for again, offset in cursors[::7]:
        part = bench.backend.read_log(handle, replica, again, 1 << 20)
        assert part.data == whole[offset:]
        assert part.state is LogState.COMPLETE


def test_refusal_is_final_and_leaves_nothing(bench: Bench) -> None:
    submission = bench.unacceptable()
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            bench.backend.submit(submission)
        assert refused.value.reason.code is ReasonCode.REFUSED
    assert bench.backend.find([submission.key])[submission.key] == []


def test_submission_too_big_for_now_waits_or_is_not_submitted(bench: Bench) -> None:
    running = bench.backend.submit(bench.submission(role("echo up; sleep 60")))
    submission = bench.too_big_for_now()
    if bench.backend.has_scheduler:
        wait_for(lambda: log_of(bench.backend, running))
        _waits_at_the_engine(bench, bench.backend.submit(submission), running)
        return
    with pytest.raises(NotSubmitted) as not_sent:
        bench.backend.submit(submission)
    assert not_sent.value.reason.code is ReasonCode.WAITING_CAPACITY
    assert bench.backend.find([submission.key])[submission.key] == []
    bench.backend.stop(running, grace_s=0, signal="KILL")
    wait_until_over(bench.backend, running)
    assert wait_until_over(bench.backend, bench.backend.submit(submission)).state is State.SUCCEEDED


def _waits_at_the_engine(bench: Bench, handle: Handle, running: Handle) -> None:
    def waiting() -> Observation | None:
        seen = bench.backend.observe([handle])[handle]
        assert isinstance(seen, Observation)
        assert seen.state is State.PENDING
        return seen if seen.reason.params.get("slurm") == "Resources" else None

    assert wait_for(waiting).reason.code is ReasonCode.ENGINE_QUEUE
    bench.backend.stop(running, grace_s=0, signal="KILL")
    assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED


def test_controller_crash_loses_no_output_or_exit_code(bench: Bench) -> None:
    go = bench.judge / "go"
    command = f"until [ -e {go} ]; do i=$((i + 1)); echo line $i; sleep 0.02; done; exit 5"
    handle = bench.backend.submit(bench.submission(role(command)))
    wait_for(lambda: log_of(bench.backend, handle))
    bench.restart_controller()
    before = log_of(bench.backend, handle)
    go.touch()
    seen = wait_until_over(bench.backend, handle)
    assert replica(seen).exit_code == 5
    lines = log_of(bench.backend, handle).splitlines(keepends=True)
    assert lines == [f"line {number}\n" for number in range(1, len(lines) + 1)]
    assert len(lines) >= before.count("\n") > 0


def test_observation_version_changes_only_with_content(bench: Bench) -> None:
    handle = bench.backend.submit(bench.submission(role("sleep 0.2")))
    versions: dict[str, Observation] = {}

    def over() -> bool:
        seen = bench.backend.observe([handle])[handle]
        assert isinstance(seen, Observation)
        assert versions.setdefault(seen.version, seen) == seen
        return seen.state in TERMINAL

    wait_for(over)
    assert len(versions) > 1


def test_forgotten_attempt_is_gone_and_never_starts_again(bench: Bench) -> None:
    submission = bench.submission()
    handle = bench.backend.submit(submission)
    wait_until_over(bench.backend, handle)
    bench.backend.forget(handle)
    bench.backend.forget(handle)
    assert bench.backend.observe([handle])[handle] is Gone.GONE
    assert bench.backend.submit(submission) == handle
    assert bench.backend.observe([handle])[handle] is Gone.GONE


def test_inventory_counts_running_jobs(bench: Bench) -> None:
    def free() -> tuple[int, int]:
        nodes = bench.backend.inventory().nodes
        return sum(node.free_cpu_milli for node in nodes), sum(node.free_memory_mib for node in nodes)

    before = bench.backend.inventory()
    cpu_milli, memory_mib = free()
    handle = bench.backend.submit(bench.submission(role("sleep 60", replicas=3)))
    during = (cpu_milli - 3 * bench.counted.cpu_milli, memory_mib - 3 * bench.counted.memory_mib)
    wait_for(lambda: free() == during)
    bench.backend.stop(handle, grace_s=0, signal="KILL")
    wait_until_over(bench.backend, handle)
    wait_for(lambda: bench.backend.inventory() == before)


SAVING = """\
cd "$CHECKPOINT_DIR" && mkdir step-1 && echo 1 >step-1/weights && touch -d -1hour step-1
echo 2 >step-2.tmp && mv step-2.tmp step-2
echo 3 >step-3.tmp && touch step-4 && ln -s step-2 step-5 && echo "${RESUME_FROM:-none}"
"""


def test_next_attempt_resumes_from_newest_complete_checkpoint(bench: Bench) -> None:
    first = bench.submission(role(SAVING), role('echo "$CHECKPOINT_DIR"', name="other"))
    handle = bench.backend.submit(first)
    seen = wait_until_over(bench.backend, handle)
    assert (seen.state, seen.resumed) == (State.SUCCEEDED, None)
    assert log_of(bench.backend, handle) == "none\n"
    folder = log_of(bench.backend, handle, "other").strip()
    spec = JobSpec(name="again", roles=(role('cat "$RESUME_FROM"; echo step-1 >"$CHECKPOINT_DIR/latest"'),))
    second = bench.backend.submit(replace(first, spec=spec, key=f"{first.key[:-1]}2", attempt=2))
    seen = wait_until_over(bench.backend, second)
    assert seen.resumed is not None
    assert (seen.resumed.name, log_of(bench.backend, second)) == ("step-2", "2\n")
    assert time.time() - 600 < seen.resumed.saved_at < time.time()
    spec = JobSpec(name="again", roles=(role('echo "$RESUME_FROM"'),))
    third = bench.backend.submit(replace(first, spec=spec, key=f"{first.key[:-1]}3", attempt=3))
    wait_until_over(bench.backend, third)
    assert log_of(bench.backend, third) == f"{folder}/step-1\n"
    for each in (handle, second):
        bench.backend.forget(each)
    assert bench.find_saved("step-2")
    bench.backend.forget(third)
    wait_for(lambda: not bench.find_saved("step-2"))
