"""A followed cluster: logs that grow by themselves, and hints at changes."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.backends.base import Following, Handle, Observation, ReplicaRef
from jobs.backends.kubernetes.logs import copies
from jobs.backends.kubernetes.logs.log_file import open_log, read_position
from jobs.states import ReplicaState, State
from tests.jobs.backends.benches import replica, role, wait_until_over
from tests.jobs.backends.kubernetes.pods import DRAIN
from tests.jobs.backends.kubernetes_bench import KubernetesBench
from tests.waiting import wait_for


@pytest.fixture
def changed(bench: KubernetesBench) -> Iterator[threading.Event]:
    """Set whenever the cluster of the bench has changed, while it is followed."""
    assert isinstance(bench.backend, Following)
    ended, changed = threading.Event(), threading.Event()
    threading.Thread(target=bench.backend.follow, args=[ended, changed.set], daemon=True).start()
    yield changed
    ended.set()  # it ends at the next change


def log(bench: KubernetesBench, handle: Handle, index: int = 0) -> Path:
    """Where the output of a replica is copied to."""
    seen = bench.backend.observe([handle])[handle]
    assert isinstance(seen, Observation)
    return Path(replica(seen, index=index).log_path)


def test_output_of_every_replica_is_copied_as_it_comes(
    bench: KubernetesBench, changed: threading.Event
) -> None:
    go = bench.judge / "go"
    command = f'echo "one $RANK"; until [ -e {go} ]; do sleep 0.1; done; echo two; sleep 0.2; echo three'
    handle = bench.backend.submit(bench.submission(role(command, replicas=2)))
    logs = [log(bench, handle, index) for index in range(2)]
    wait_for(lambda: [each.exists() and each.read_bytes().count(b"\n") for each in logs] == [1, 1])
    changed.clear()
    go.touch()
    wait_for(lambda: all(read_position(each).is_complete for each in logs))
    assert [each.read_bytes().splitlines()[1:] for each in logs] == [[b"two", b"three"]] * 2
    assert changed.wait(60)
    assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED


def test_replica_has_ended_when_its_output_is_copied(bench: KubernetesBench) -> None:
    handle = bench.backend.submit(bench.submission(role(f"seq 20000; {DRAIN}")))
    path = log(bench, handle)
    with open_log(path) as file:  # somebody who copies, and is slow
        assert file is not None
        wait_for(lambda: bench.pods()[0]["status"]["phase"] == "Succeeded")
        seen = bench.backend.observe([handle])[handle]
        assert isinstance(seen, Observation)
        assert (seen.state, replica(seen).state) == (State.RUNNING, ReplicaState.RUNNING)
        assert replica(seen).exit_code is None
    assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED
    assert read_position(path).is_complete
    assert path.read_text().split() == [str(number) for number in range(1, 20001)]


def test_replica_whose_output_nobody_copies_has_ended_in_time(
    bench: KubernetesBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.backends.kubernetes.status.observer.COPY_S", 1)
    monkeypatch.setattr(copies, "catch_up", lambda *_arguments, **_more: False)
    handle = bench.backend.submit(bench.submission(role("exit 3")))
    assert replica(wait_until_over(bench.backend, handle)).exit_code == 3


def test_log_of_a_job_without_pods_is_open(bench: KubernetesBench) -> None:
    handle = super(type(bench.backend), bench.backend).submit(bench.submission(role("echo one")))
    found = bench.backend.read_log(handle, ReplicaRef("worker", 0), "", 100)
    assert (found.data, found.state) == (b"", "open")
    bench.backend.release([handle])
    wait_until_over(bench.backend, handle)
    found = bench.backend.read_log(handle, ReplicaRef("worker", 0), "", 100)
    assert (found.data, found.state) == (b"one\n", "complete")
