"""States of replicas and attempts, from pods as an API server of Kubernetes 1.20 has told them."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.kubernetes import texts
from jobs.backends.kubernetes.status import observation, records
from jobs.backends.kubernetes.status.records import AttemptStatus, StopRequest
from jobs.backends.kubernetes.status.replicas import ReplicaStatus, read_pod
from jobs.backends.remote.records import AttemptRecord, CompletionCounts, RoleRecord
from jobs.messages import backend_texts
from jobs.messages.reasons import reason_message
from jobs.states import ENDINGS, Phase, Reason, ReasonCode, ReplicaState, State
from tests.jobs.backends.benches import CHECKOUT

PODS: dict[str, Any] = json.loads((CHECKOUT / "tests/data/kubernetes/pods.json").read_text())
NOW = 1795823800.0
"""A minute after most of them."""


def read(name: str, now: float = NOW + 3600) -> ReplicaStatus:
    return read_pod(PODS[name], 64, now)


def record(replicas: int = 1, min_failed: int | None = 1, min_succeeded: int | None = None) -> AttemptRecord:
    counts = CompletionCounts(min_failed, min_succeeded)
    role = RoleRecord(
        "worker", "worker", replicas, counts, 64, image=True, contained=True, offset=0, each=0, ports=()
    )
    return AttemptRecord((role,), (20000, 29999), time_limit_s=3)


@pytest.mark.parametrize(
    ("name", "state", "code", "exit_code"),
    [
        ("succeeded", ReplicaState.SUCCEEDED, ReasonCode.COMPLETED, 0),
        ("exit", ReplicaState.FAILED, ReasonCode.EXIT_CODE, 3),
        ("killed", ReplicaState.FAILED, ReasonCode.SIGNALLED, 137),
        ("oom", ReplicaState.FAILED, ReasonCode.OUT_OF_MEMORY, 137),
        ("deadline", ReplicaState.STOPPED, ReasonCode.TIME_LIMIT, None),
        ("evicted", ReplicaState.FAILED, ReasonCode.NODE_LOST, None),
        ("interrupted", ReplicaState.FAILED, ReasonCode.NODE_LOST, 128),
        ("unknown", ReplicaState.FAILED, ReasonCode.NODE_LOST, None),
        ("init", ReplicaState.FAILED, ReasonCode.INIT_CONTAINER_FAILED, None),
        ("nocommand", ReplicaState.FAILED, ReasonCode.INIT_CONTAINER_FAILED, None),
        ("name", ReplicaState.FAILED, ReasonCode.IMAGE_FAILED, None),
        ("image", ReplicaState.FAILED, ReasonCode.IMAGE_FAILED, None),
    ],
)
def test_ended_pod_tells_the_end_of_its_replica(
    name: str, state: ReplicaState, code: ReasonCode, exit_code: int | None
) -> None:
    seen = read(name)
    assert (seen.state, seen.exit_code) == (state, exit_code)
    assert seen.reason is not None
    assert seen.reason.code is code
    assert seen.ended_at is not None
    assert code in ENDINGS


@pytest.mark.parametrize(
    ("name", "word"),
    [("insufficient", "Insufficient cpu"), ("nowhere", "NodeAffinity"), ("image", "ErrImagePull")],
)
def test_waiting_pod_tells_what_it_waits_for(name: str, word: str) -> None:
    seen = read(name, NOW)
    assert (seen.state, seen.word) == (ReplicaState.WAITING, word)
    assert seen.detail


def test_image_that_is_pulled_for_too_long_fails_the_replica() -> None:
    began = 1795823719.0
    assert read("image", began + 170).state is ReplicaState.WAITING
    assert read("image", began + 190).state is ReplicaState.FAILED


def test_time_limit_ends_a_replica_when_its_grace_period_is_over() -> None:
    """The container's state is that of before for good, in Kubernetes 1.20."""
    pod = json.loads(json.dumps(PODS["deadline"]))
    pod["spec"]["terminationGracePeriodSeconds"] = 10
    began = 1795823715.0
    assert read_pod(pod, 64, began + 3 + 9).state is ReplicaState.RUNNING
    assert read_pod(pod, 64, began + 3 + 11).state is ReplicaState.STOPPED


def test_pod_in_deletion_tells_since_when() -> None:
    seen = read("leaving")
    assert seen.state is ReplicaState.RUNNING
    assert seen.was_removed
    assert not read("running").was_removed
    gone = ReplicaStatus(ReplicaState.FAILED, ended_at=seen.removed_at, removed_at=seen.removed_at)
    assert gone.was_removed
    own = ReplicaStatus(ReplicaState.FAILED, ended_at=10.0, removed_at=20.0)
    assert not own.was_removed


@pytest.mark.parametrize("name", PODS)
def test_status_survives_being_recorded(name: str, tmp_path: Path) -> None:
    status = AttemptStatus({"worker-0": read(name)}, "verdict")
    records.write_status(tmp_path, status)
    assert records.read_status(tmp_path) == status


def test_end_survives_being_recorded_and_the_first_one_counts(tmp_path: Path) -> None:
    status = AttemptStatus({"worker-0": read("exit")})
    seen = observation.observe(record(), status, None, tmp_path)
    assert records.write_end(tmp_path, seen) == seen
    other = observation.observe(record(), AttemptStatus({"worker-0": read("oom")}), None, tmp_path)
    assert records.write_end(tmp_path, other) == seen


def test_first_failure_in_time_decides_and_is_named(tmp_path: Path) -> None:
    early = ReplicaStatus(
        ReplicaState.FAILED, Reason(ReasonCode.EXIT_CODE, {"exit_code": 4}), 4, ended_at=10.0
    )
    late = ReplicaStatus(
        ReplicaState.FAILED, Reason(ReasonCode.SIGNALLED, {"signal": 9, "exit_code": 137}), 137, ended_at=11.0
    )
    replicas = {"worker-0": late, "worker-1": early}
    decision = observation.decide(record(2), replicas, None)
    assert decision == (
        State.FAILED,
        Reason(ReasonCode.EXIT_CODE, {"exit_code": 4, "role": "worker", "index": 1}),
    )


def test_stop_request_ends_as_stopped_unless_all_had_ended(tmp_path: Path) -> None:
    stop = StopRequest("TERM", 0.0, 10.0)
    stopped = ReplicaStatus(ReplicaState.STOPPED, Reason(ReasonCode.JOB_ENDED), 143, ended_at=5.0)
    done = ReplicaStatus(ReplicaState.SUCCEEDED, Reason(ReasonCode.COMPLETED), 0, ended_at=5.0)
    both = observation.observe(
        record(2), AttemptStatus({"worker-0": stopped, "worker-1": done}), stop, tmp_path
    )
    assert (both.state, both.reason.code) == (State.STOPPED, ReasonCode.USER_STOP)
    alone = observation.observe(record(), AttemptStatus({"worker-0": done}), stop, tmp_path)
    assert (alone.state, alone.reason.code) == (State.SUCCEEDED, ReasonCode.COMPLETED)


def test_time_limit_of_one_replica_is_the_jobs(tmp_path: Path) -> None:
    seen = observation.observe(record(), AttemptStatus({"worker-0": read("deadline")}), None, tmp_path)
    assert (seen.state, seen.reason.code, seen.phase) == (State.STOPPED, ReasonCode.TIME_LIMIT, Phase.ENDED)


def test_tolerated_failures_are_told_with_success(tmp_path: Path) -> None:
    status = AttemptStatus({"worker-0": read("exit"), "worker-1": read("succeeded")})
    seen = observation.observe(record(2, None), status, None, tmp_path)
    assert (seen.state, seen.reason.code) == (State.SUCCEEDED, ReasonCode.COMPLETED_WITH_FAILURES)


def test_attempt_waits_in_the_queue_while_one_replica_has_no_node(tmp_path: Path) -> None:
    status = AttemptStatus({"worker-0": read("insufficient", NOW)})
    seen = observation.observe(record(), status, None, tmp_path)
    assert (seen.state, seen.phase) == (State.PENDING, Phase.QUEUING)
    assert seen.reason.params["kubernetes"] == "Insufficient cpu"


@pytest.mark.parametrize("name", ["insufficient", "nowhere", "image", "evicted", "deadline", "init", "oom"])
def test_every_reason_has_a_sentence(name: str, tmp_path: Path) -> None:
    status = AttemptStatus({"worker-0": read(name, NOW)})
    seen = observation.observe(record(), status, None, tmp_path)
    sentence = reason_message(seen.reason.code, dict(seen.reason.params))
    assert sentence
    assert "%(" not in sentence


def test_words_of_the_engine_have_sentences() -> None:
    assert "(Insufficient nvidia.com/gpu)" in backend_texts.pending_message(
        "kubernetes", {"kubernetes": "Insufficient nvidia.com/gpu"}
    )
    for word in texts.STATES:
        params = {"kubernetes": word, "node": "n1", "error": "disk", "detail": "why"}
        assert "%(" not in backend_texts.state_message("kubernetes", params)
