"""What breaks on a cluster, and what a job's end is then."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import Handle, NotSubmitted, Observation, Unknown, Unreachable
from jobs.backends.kubernetes import backend as kubernetes_backend
from jobs.backends.kubernetes import submitter
from jobs.backends.kubernetes.backend import KubernetesBackend
from jobs.backends.kubernetes.client.api import Api
from jobs.backends.kubernetes.config import KubernetesConfig
from jobs.backends.kubernetes.status import observer
from jobs.spec import NodeChoice, Resources
from jobs.states import ENDINGS, ReasonCode, ReplicaState, Retry, State
from tests.jobs.backends.benches import log_of, replica, role, wait_until_over
from tests.jobs.backends.kubernetes_bench import KubernetesBench
from tests.kubernetes.cluster import Cluster
from tests.waiting import wait_for

ON_NODE2 = NodeChoice(only=("node2",))
KILLED_AT = [
    f"kubernetes.{point}"
    for point in ("recorded", "claimed", "prepared", "submitted", "released", "creating", "created")
]


class Death(BaseException):
    """Of the worker, which no code survives."""


def run(bench: KubernetesBench, command: str = "echo up; sleep 120", **more: Any) -> Handle:
    """Start a job on the second node, and wait until it runs."""
    handle = bench.backend.submit(bench.submission(role(command, nodes=ON_NODE2, **more)))
    wait_for(lambda: observe(bench, handle).state is State.RUNNING)
    return handle


def observe(bench: KubernetesBench, handle: Handle) -> Observation:
    (seen,) = bench.backend.observe([handle]).values()
    assert isinstance(seen, Observation)
    return seen


def is_transient(seen: Observation) -> bool:
    return ENDINGS[seen.reason.code].retry is Retry.TRANSIENT


@pytest.mark.parametrize("point", KILLED_AT)
def test_submitter_killed_midway_leaves_a_job_that_another_completes(
    bench: KubernetesBench, tmp_path: Path, point: str
) -> None:
    faults = tmp_path / "faults"
    faults.mkdir()
    submission = bench.submission(role("echo started", replicas=2))
    (faults / point).write_text("KILL")
    assert bench.submit_in_another_process(submission, faults).end() == -9
    known = bench.backend.find([submission.key])[submission.key]
    handle = known[0] if known else bench.backend.submit(submission)
    if point == "kubernetes.submitted":
        assert observe(bench, handle).held
        assert bench.pods() == []
    bench.backend.release([handle])
    assert bench.backend.submit(submission) == handle
    assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED
    assert [log_of(bench.backend, handle, index=index) for index in (0, 1)] == ["started\n"] * 2


@pytest.mark.parametrize("point", ["kubernetes.released", "kubernetes.creating"])
def test_release_cut_short_is_completed_by_an_observation(
    bench: KubernetesBench, tmp_path: Path, point: str
) -> None:
    faults = tmp_path / "faults"
    faults.mkdir()
    submission = bench.submission(role("echo started", replicas=2))
    (faults / point).write_text("KILL")
    assert bench.submit_in_another_process(submission, faults).end() == -9
    (handle,) = bench.backend.find([submission.key])[submission.key]
    assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED


def test_stop_cut_short_is_completed_by_an_observation(
    bench: KubernetesBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = run(bench)

    def die(point: str) -> None:
        assert point == "kubernetes.stop_written"
        raise Death

    with monkeypatch.context() as patch:
        patch.setattr(kubernetes_backend, "fault", die)
        with pytest.raises(Death):
            bench.backend.stop(handle, grace_s=1, signal="TERM")
    assert wait_until_over(bench.backend, handle).state is State.STOPPED
    assert not bench.processes()


def test_forgotten_job_is_not_started_by_a_submitter_that_was_frozen(
    bench: KubernetesBench, tmp_path: Path
) -> None:
    faults = tmp_path / "faults"
    faults.mkdir()
    for point in ("recorded", "prepared", "creating"):
        submission = bench.submission(role(f"touch {bench.judge}/ran-{point}; sleep 60"))
        (faults / f"kubernetes.{point}").write_text("STOP")
        frozen = bench.submit_in_another_process(submission, faults)
        wait_for(lambda: list(faults.glob("*.taken.*")))
        with suppress(Unknown):
            handle = KubernetesBackend.submit(bench.backend, submission)
        bench.backend.stop(handle, grace_s=0, signal="KILL")
        wait_until_over(bench.backend, handle)
        bench.backend.forget(handle)
        frozen.end()
        wait_for(lambda: not bench.pods())
        assert not (bench.judge / f"ran-{point}").exists(), point
        for taken in faults.iterdir():
            taken.unlink()


def test_job_that_was_never_released_is_removed_after_a_week(
    bench: KubernetesBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    stray = bench.submission(endpoint_token="secret")
    KubernetesBackend.submit(bench.backend, stray)
    ended = bench.submission()
    handle = bench.backend.submit(ended)
    wait_until_over(bench.backend, handle)
    path = f"/api/v1/namespaces/{bench.namespace}/secrets"

    def has_secret() -> bool:
        return stray.key in [each["metadata"]["name"] for each in bench.api.list(path).items]

    bench.backend.forget(handle)
    assert has_secret()
    monkeypatch.setattr(submitter, "STRAY_S", 0)
    bench.backend.forget(handle)
    wait_for(lambda: not has_secret())
    assert bench.backend.find([stray.key])[stray.key] == []


@contextmanager
def losing_answer(number: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Have the API server take the request with this number, of those that change something, unanswered."""
    asked: list[str] = []
    ask = Api._ask

    def ask_and_lose(self: Api, method: str, path: str, *more: Any) -> Any:
        answer = ask(self, method, path, *more)
        if method != "GET" and not more[0].get("dryRun"):
            asked.append(f"{method} {path}")
            if len(asked) == number:
                raise Unreachable(f"no answer to {method} {path}")
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(Api, "_ask", ask_and_lose)
        yield asked


def test_lost_answer_of_any_request_starts_a_job_once(
    bench: KubernetesBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    number, asked = 0, ["first"]
    while len(asked) >= number:
        number += 1
        submission = bench.submission(role("echo started"), endpoint_token="secret")
        with losing_answer(number, monkeypatch) as asked, suppress(NotSubmitted, Unknown, Unreachable):
            bench.backend.submit(submission)
        known = bench.backend.find([submission.key])[submission.key]
        handle = known[0] if known else bench.backend.submit(submission)
        bench.backend.release([handle])
        assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED, asked
        assert log_of(bench.backend, handle) == "started\n", asked
    assert number > 6


def test_killed_kubelet_reports_the_end_that_it_missed(bench: KubernetesBench, kubernetes: Cluster) -> None:
    go = bench.judge / "go"
    handle = run(bench, f"until [ -e {go} ]; do sleep 0.1; done; exit 7")
    kubernetes.kill_kubelet(2, stay_away=True)
    try:
        go.touch()
        wait_for(lambda: not bench.processes("bash"))
        assert observe(bench, handle).state is State.RUNNING
    finally:
        kubernetes.return_kubelet(2)
    seen = wait_until_over(bench.backend, handle)
    assert (seen.state, replica(seen).exit_code) == (State.FAILED, 7)


def test_job_on_a_lost_node_can_be_stopped(
    bench: KubernetesBench, kubernetes: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observer, "OVERDUE_S", 2)
    handle = run(bench)
    kubernetes.kill_kubelet(2, stay_away=True)
    try:
        bench.backend.stop(handle, grace_s=1, signal="TERM")
        seen = wait_until_over(bench.backend, handle)
        assert seen.state is State.STOPPED
        assert bench.pods() == []
    finally:
        kubernetes.return_kubelet(2)
    wait_for(lambda: not bench.processes(), 60)


def test_drained_node_fails_the_job_for_a_retry(bench: KubernetesBench, kubernetes: Cluster) -> None:
    handle = run(bench)
    try:
        kubernetes.kubectl(
            *("drain", "node2", "--force", "--ignore-daemonsets", "--delete-emptydir-data"),
            *("--grace-period=1", "--timeout=60s"),
        )
        seen = wait_until_over(bench.backend, handle)
    finally:
        kubernetes.kubectl("uncordon", "node2")
    assert seen.reason.code is ReasonCode.NODE_LOST
    assert (seen.reason.params["kubernetes"], seen.reason.params["node"]) == ("Drained", "node2")
    assert is_transient(seen)


def test_deleted_pod_fails_the_job_with_the_reason(bench: KubernetesBench, kubernetes: Cluster) -> None:
    handle = run(bench)
    (pod,) = bench.pods()
    name = pod["metadata"]["name"]
    kubernetes.kubectl("delete", "pod", name, "--namespace", bench.namespace, "--grace-period=1")
    seen = wait_until_over(bench.backend, handle)
    assert seen.state is State.FAILED
    assert (seen.reason.code, seen.reason.params["kubernetes"]) == (ReasonCode.NODE_LOST, "Deleted")
    assert replica(seen).state is ReplicaState.FAILED
    assert is_transient(seen)


def test_pod_deleted_after_its_end_keeps_the_end(bench: KubernetesBench, kubernetes: Cluster) -> None:
    """Which came first within one second is not known: Kubernetes writes no more of a time."""
    handle = bench.backend.submit(bench.submission(role("exit 3")))
    wait_for(lambda: bench.pods()[0]["status"]["phase"] == "Failed")
    ended = bench.pods()[0]["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"]
    wait_for(lambda: datetime.now(UTC) > datetime.fromisoformat(ended) + timedelta(seconds=1))
    kubernetes.kubectl("delete", "pod", bench.pods()[0]["metadata"]["name"], "--namespace", bench.namespace)
    seen = wait_until_over(bench.backend, handle)
    assert (seen.reason.code, replica(seen).exit_code) == (ReasonCode.EXIT_CODE, 3)


def test_pod_that_fills_its_nodes_disk_is_evicted(bench: KubernetesBench) -> None:
    resources = Resources(cpu_milli=100, memory_mib=128, disk_mib=20)
    command = "head -c 60000000 /dev/zero >/job/big; sleep 120"
    handle = bench.backend.submit(bench.submission(role(command, resources=resources)))
    seen = wait_until_over(bench.backend, handle, 120)
    assert (seen.reason.code, seen.reason.params["kubernetes"]) == (ReasonCode.NODE_LOST, "Evicted")
    assert "ephemeral" in str(seen.reason.params["error"]).lower()


def test_preempted_pod_fails_the_job_for_a_retry(bench: KubernetesBench, kubernetes: Cluster) -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    bench.api.create(classes, {"metadata": {"name": "urgent"}, "value": 1000})
    handle = run(bench, resources=Resources(cpu_milli=1500, memory_mib=64))
    pods = f"/api/v1/namespaces/{bench.namespace}/pods"
    container = {
        "name": "main",
        "image": "localhost/base:12",
        "command": ["sleep", "60"],
        "resources": {"requests": {"cpu": "1500m"}},
    }
    urgent = {
        "priorityClassName": "urgent",
        "nodeSelector": {"kubernetes.io/hostname": "node2"},
        "containers": [container],
    }
    try:
        bench.api.create(pods, {"metadata": {"name": "urgent"}, "spec": urgent})
        seen = wait_until_over(bench.backend, handle)
        assert (seen.reason.code, seen.reason.params["kubernetes"]) == (ReasonCode.NODE_LOST, "Preempted")
        assert is_transient(seen)
    finally:
        bench.api.delete(f"{pods}/urgent", grace_s=0)
        bench.api.delete(f"{classes}/urgent")


def test_token_that_is_not_accepted_says_nothing_about_jobs(bench: KubernetesBench, tmp_path: Path) -> None:
    handle = run(bench)
    settings = {**bench.told, "token": "expired"}
    expired = KubernetesBackend(KubernetesConfig.from_settings(bench.home, settings))
    with pytest.raises(Unreachable):
        expired.observe([handle])
    with pytest.raises(Unreachable):
        expired.find([Handle("bother-job1-1")])
    with pytest.raises(NotSubmitted):
        expired.submit(bench.submission())
    assert observe(bench, handle).state is State.RUNNING
    bench.backend.stop(handle, grace_s=0, signal="KILL")
    wait_until_over(bench.backend, handle)


def test_api_server_that_is_away_says_nothing_about_jobs(bench: KubernetesBench, tmp_path: Path) -> None:
    settings = {**bench.told, "url": "https://127.0.0.1:9", "timeout_s": 1}
    away = KubernetesBackend(KubernetesConfig.from_settings(bench.home, settings))
    handle = Handle(f"{bench.namespace}/{bench.installation}-job0-1")
    submission = bench.submission()
    with pytest.raises(NotSubmitted):
        away.submit(submission)
    bench.backend.submit(submission)
    with pytest.raises(Unreachable):
        away.observe([handle])
    with pytest.raises(Unknown):
        away.submit(submission)
    with pytest.raises(Unreachable):
        away.inventory()
    wait_until_over(bench.backend, handle)


def test_removed_namespace_ends_its_jobs(bench: KubernetesBench, kubernetes: Cluster) -> None:
    with kubernetes.make_namespace() as name:
        config = KubernetesConfig.from_settings(bench.home, {**bench.told, "namespace": name})
        backend = KubernetesBackend(config)
        handle = backend.submit(bench.submission(role("sleep 120", nodes=ON_NODE2)))
        backend.release([handle])
        wait_for(lambda: getattr(backend.observe([handle])[handle], "state", None) is State.RUNNING)
        kubernetes.kubectl("delete", "namespace", name)
        seen = wait_until_over(backend, handle)
        assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode.NODE_LOST)
