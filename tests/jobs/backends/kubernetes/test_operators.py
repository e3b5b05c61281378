"""Jobs as objects of Kubeflow's kinds, whose pods an operator makes; it is a stand-in, on real schemas.

The console has the rights of deploy/kubernetes and no others.
"""

import asyncio
import json
import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import Gone, Handle, Observation, ReplicaRef, Submission, Unreachable
from jobs.backends.kubernetes import discovery, rights
from jobs.backends.kubernetes.backend import KubernetesBackend
from jobs.backends.kubernetes.client.api import ApiError
from jobs.backends.sessions import SessionKind, SessionRequest
from jobs.dialects.kubeflow.kinds import V1
from jobs.messages.reasons import reason_message
from jobs.spec import Framework, Port, RoleSpec, SecretRef
from jobs.states import ReasonCode, ReplicaState, State
from tests.jobs.backends.benches import log_of, replica, role, wait_until_over
from tests.jobs.backends.kubernetes.test_jobs import ALL_REDUCE, TRAP
from tests.jobs.backends.kubernetes_bench import KubernetesBench
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.training_operator import PATH as CRDS
from tests.kubernetes.training_operator import TrainingOperator, install
from tests.waiting import wait_for

REDUCE = f"python3 -c {shlex.quote(ALL_REDUCE)}"
HELLO = 'echo "Hello World from $PAI_CURRENT_TASK_ROLE_NAME $PAI_TASK_INDEX, rank $RANK of $WORLD_SIZE"'


def serves(kubernetes: Cluster, count: int, *, kueue: bool = False) -> bool:
    """Whether so many kinds are known to be served, and Kueue, now that they have changed."""
    with suppress(ApiError, Unreachable):
        found = discovery.discover(kubernetes.api, kubernetes.server)
        return len(found.kinds) == count and bool(found.kueue) == kueue
    return False


@pytest.fixture(scope="module")
def operator(kubernetes: Cluster) -> Iterator[TrainingOperator]:
    """The stand-in, with the kinds that it makes pods of."""
    with install(kubernetes.api, "kubeflow.org"), TrainingOperator(kubernetes.api) as running:
        wait_for(lambda: serves(kubernetes, 3))
        yield running
    wait_for(lambda: serves(kubernetes, 0))


@pytest.fixture
def bench(
    tmp_path: Path, kubernetes: Cluster, namespace: str, account: str, operator: TrainingOperator
) -> Iterator[KubernetesBench]:
    """A console with the rights of the file, and an operator."""
    made = KubernetesBench(tmp_path, kubernetes, namespace, {"token": account})
    yield made
    operator.is_away = False
    for kind in ("pytorchjobs", "tfjobs", "xgboostjobs"):
        for each in made.api.list(f"/apis/{V1}/namespaces/{namespace}/{kind}").items:
            made.api.delete(f"/apis/{V1}/namespaces/{namespace}/{kind}/{each['metadata']['name']}")
    made.close()


def torch(bench: KubernetesBench, *roles: RoleSpec, **more: Any) -> Submission:
    return bench.submission(*roles, framework=Framework.PYTORCH, **more)


def job_of(bench: KubernetesBench, key: str, kind: str = "pytorchjobs") -> dict[str, Any] | None:
    """The object of an attempt, None where there is none."""
    found = bench.api.list(f"/apis/{V1}/namespaces/{bench.namespace}/{kind}").items
    return next((each for each in found if each["metadata"]["name"] == key), None)


def conditions_of(bench: KubernetesBench, key: str, kind: str = "pytorchjobs") -> dict[str, str]:
    job = job_of(bench, key, kind) or {}
    return {each["type"]: each["status"] for each in (job.get("status") or {}).get("conditions") or ()}


def observe(bench: KubernetesBench, handle: Handle) -> Observation:
    (seen,) = bench.backend.observe([handle]).values()
    assert isinstance(seen, Observation)
    return seen


def wait_until_running(bench: KubernetesBench, handle: Handle, replicas: int = 1) -> None:
    def running() -> bool:
        states = [each.state for each in observe(bench, handle).replicas]
        return states.count(ReplicaState.RUNNING) == replicas

    wait_for(running, interval=0.1)


def test_connection_test_and_inventory_tell_the_kinds_and_missing_rights(
    bench: KubernetesBench, kubernetes: Cluster
) -> None:
    assert bench.backend.check().lacking == ()
    facilities = bench.backend.inventory().facilities
    assert facilities is not None
    assert facilities.operators == ("PyTorchJob", "TFJob", "XGBoostJob")
    role_path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/job-console-jobs"
    rules = kubernetes.api.get(role_path)["rules"]
    kubernetes.api.patch(role_path, {"rules": [each for each in rules if "tfjobs" not in each["resources"]]})
    try:
        missing = f"Missing right: create tfjobs in {bench.namespace}"
        wait_for(lambda: missing in bench.backend.check().lacking)
    finally:
        kubernetes.api.patch(role_path, {"rules": rules})
    wait_for(lambda: not bench.backend.check().lacking)


def test_job_goes_as_plain_pods_until_the_console_has_the_rights_on_its_kind(
    bench: KubernetesBench, kubernetes: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rights, "_usable", {})
    role_path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/job-console-jobs"
    rules = kubernetes.api.get(role_path)["rules"]
    without = [each for each in rules if "pytorchjobs" not in each["resources"]]
    kubernetes.api.patch(role_path, {"rules": without})
    try:
        wait_for(lambda: any("pytorchjobs" in each for each in bench.backend.check().lacking))
        handle = bench.backend.submit(torch(bench, role("true")))
        assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED
        assert {each["metadata"]["ownerReferences"][0]["kind"] for each in bench.pods()} == {"ConfigMap"}
    finally:
        kubernetes.api.patch(role_path, {"rules": rules})
    wait_for(lambda: not bench.backend.check().lacking)
    bench.backend.forget(handle)


def test_hello_world_runs_as_pytorchjob(bench: KubernetesBench) -> None:
    job = torch(bench, role(HELLO, replicas=2))
    handle = bench.backend.submit(job)
    seen = wait_until_over(bench.backend, handle)
    assert (seen.state, seen.reason.code) == (State.SUCCEEDED, ReasonCode.COMPLETED)
    assert [log_of(bench.backend, handle, index=index) for index in (0, 1)] == [
        f"Hello World from worker {index}, rank {index} of 2\n" for index in (0, 1)
    ]
    wait_for(lambda: conditions_of(bench, job.key).get("Succeeded") == "True")
    assert {each["metadata"]["ownerReferences"][0]["kind"] for each in bench.pods()} == {"PyTorchJob"}
    bench.backend.forget(handle)
    assert job_of(bench, job.key) is None
    assert bench.backend.observe([handle])[handle] is Gone.GONE


@pytest.mark.parametrize("with_master", [False, True])
def test_replicas_find_rank_zero_by_the_operators_names_and_reduce(
    bench: KubernetesBench, with_master: bool
) -> None:
    roles = (
        [role(REDUCE, name="master"), role(REDUCE, replicas=2)] if with_master else [role(REDUCE, replicas=3)]
    )
    job = torch(bench, *roles)
    handle = bench.backend.submit(job)
    assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED
    log = log_of(bench.backend, handle, index=1)
    assert log == f"sum 3 of 3 host {job.key}-worker-1\n"


def test_tfjob_has_the_operators_cluster_and_the_same_ports(bench: KubernetesBench) -> None:
    command = 'echo "$TF_CONFIG"; echo "$PAI_HOST_IP_worker_1"'
    roles = (role("sleep 60", name="ps"), role("sleep 60", name="chief"), role(command, replicas=2))
    job = bench.submission(*roles, framework=Framework.TENSORFLOW, grace_s=1)
    handle = bench.backend.submit(job)
    wait_for(lambda: log_of(bench.backend, handle, index=1).count("\n") == 2, interval=0.2)
    config, peers = log_of(bench.backend, handle, index=1).splitlines()
    found = json.loads(config)
    assert found["task"] == {"type": "worker", "index": 1}
    host = f"{job.key}-worker-1"
    assert found["cluster"]["worker"][1].startswith(f"{host}.{bench.namespace}.svc:20000")
    assert {*found["cluster"]} == {"ps", "chief", "worker"}
    assert peers == host
    bench.backend.stop(handle, grace_s=1, signal="TERM")
    assert wait_until_over(bench.backend, handle).state is State.STOPPED


def test_xgboostjob_has_ranks_and_a_tracker(bench: KubernetesBench) -> None:
    command = 'echo "$RANK $DMLC_TASK_ID $DMLC_NUM_WORKER $DMLC_TRACKER_URI $MASTER_ADDR"'
    job = bench.submission(role(command, name="master"), role(command), framework=Framework.XGBOOST)
    handle = bench.backend.submit(job)
    assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED
    master = f"{job.key}-master-0"
    assert log_of(bench.backend, handle).splitlines()[-1] == f"1 1 2 {master} {master}"
    assert conditions_of(bench, job.key, "xgboostjobs")["Created"] == "True"


def list_lost(sent: Any, made: Any, at: str = "") -> list[str]:
    """The paths of what was sent and is not there."""
    if isinstance(sent, dict) and isinstance(made, dict):
        return [lost for key, each in sent.items() for lost in list_lost(each, made.get(key), f"{at}.{key}")]
    if isinstance(sent, list) and isinstance(made, list) and len(sent) == len(made):
        pairs = enumerate(zip(sent, made, strict=True))
        return [lost for number, pair in pairs for lost in list_lost(*pair, f"{at}[{number}]")]
    return [] if sent == made else [at]


def test_no_field_of_the_object_is_unknown_to_the_schema(bench: KubernetesBench) -> None:
    """The API server drops what a schema does not know, and refuses what it forbids."""
    job = torch(
        bench,
        role("true", ports=(Port(label="web"),), env={"A": "b"}),
        secret_env={"TOKEN": SecretRef(name="mine")},
        secrets={"mine": "hunter"},
        time_limit_s=600,
        description="about",
    )
    (sent,) = (json.loads(each.script) for each in bench.backend.render(job).roles)
    assert sent["kind"] == "PyTorchJob"
    made = bench.api.create(f"/apis/{V1}/namespaces/{bench.namespace}/pytorchjobs", sent, dry_run=True)
    assert list_lost(sent["spec"], made["spec"]) == []
    sent["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = "two"
    with pytest.raises(ApiError) as refused:
        bench.api.create(f"/apis/{V1}/namespaces/{bench.namespace}/pytorchjobs", sent, dry_run=True)
    assert refused.value.status == 422


def test_failure_of_a_worker_fails_the_job_with_its_exit_code(bench: KubernetesBench) -> None:
    command = 'if [ "$PAI_TASK_INDEX" = 1 ]; then exit 3; fi; sleep 60'
    job = torch(bench, role(command, replicas=2), grace_s=1)
    handle = bench.backend.submit(job)
    seen = wait_until_over(bench.backend, handle)
    assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode.EXIT_CODE)
    assert (seen.reason.params["exit_code"], seen.reason.params["index"]) == (3, 1)
    assert replica(seen, index=0).state is ReplicaState.STOPPED
    wait_for(lambda: not bench.processes())


async def test_session_and_port_reach_a_replica(bench: KubernetesBench) -> None:
    job = torch(bench, role('python3 -m http.server "$MASTER_PORT"', replicas=2))
    handle = bench.backend.submit(job)
    wait_for(lambda: "Serving" in log_of(bench.backend, handle, index=1))
    session = await bench.backend.exec(
        handle, ReplicaRef("worker", 1), SessionRequest(SessionKind.LINE, line='echo "rank $RANK"')
    )
    assert await session.read(100) == b"rank 1\n"
    await session.close()
    found = await bench.backend.connect(handle, ReplicaRef("worker", 1), f"{job.key}-worker-1", 20000)
    with found:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(found, b"GET / HTTP/1.0\r\n\r\n")
        assert await loop.sock_recv(found, 8) == b"HTTP/1.0"


def test_stop_sends_its_signal_and_no_pod_is_made_again(bench: KubernetesBench) -> None:
    job = torch(bench, role(TRAP, replicas=2))
    handle = bench.backend.submit(job)
    wait_until_running(bench, handle, 2)
    wait_for(lambda: "up" in log_of(bench.backend, handle, index=1))
    bench.backend.stop(handle, grace_s=6, signal="USR1")
    wait_for(lambda: "got USR1" in log_of(bench.backend, handle))
    assert observe(bench, handle).state is State.RUNNING
    assert wait_until_over(bench.backend, handle).state is State.STOPPED
    assert job_of(bench, job.key) is None
    wait_for(lambda: not bench.processes())
    assert not [each for each in bench.pods() if each["status"]["phase"] in ("Pending", "Running")]


def test_job_that_is_stopped_before_its_pods_are_made_starts_nothing(
    bench: KubernetesBench, operator: TrainingOperator
) -> None:
    operator.is_away = True
    job = torch(bench, role("sleep 60"))
    handle = bench.backend.submit(job)
    seen = observe(bench, handle)
    assert (seen.state, seen.reason.code) == (State.PENDING, ReasonCode.ENGINE_QUEUE)
    assert "operator does not respond" in reason_message(seen.reason.code, seen.reason.params)
    bench.backend.stop(handle, grace_s=0, signal="TERM")
    assert wait_until_over(bench.backend, handle).state is State.STOPPED
    assert job_of(bench, job.key) is None


def test_object_whose_creation_was_not_answered_is_adopted(bench: KubernetesBench) -> None:
    job = torch(bench, role("sleep 60"))
    handle = bench.backend.submit(job)
    made = job_of(bench, job.key)
    claim = f"/api/v1/namespaces/{bench.namespace}/configmaps/{job.key}"
    bench.api.patch(claim, {"metadata": {"annotations": None}})
    bench.backend.release([handle])
    again = job_of(bench, job.key)
    assert made is not None
    assert again is not None
    assert again["metadata"]["uid"] == made["metadata"]["uid"]
    assert "job-console/created" in bench.api.get(claim)["metadata"]["annotations"]
    wait_until_running(bench, handle)


def test_object_of_another_maker_is_not_adopted(bench: KubernetesBench, operator: TrainingOperator) -> None:
    operator.is_away = True
    job = torch(bench, role("true"))
    (sent,) = (json.loads(each.script) for each in bench.backend.render(job).roles)
    path = f"/apis/{V1}/namespaces/{bench.namespace}/pytorchjobs"
    handle = KubernetesBackend.submit(bench.backend, job)
    bench.api.create(path, sent)
    bench.backend.release([handle])
    seen = observe(bench, handle)
    assert seen.reason.params["kubernetes"] == "FailedCreate"
    bench.api.delete(f"{path}/{job.key}")
    operator.is_away = False
    assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED


def test_object_that_somebody_deletes_ends_the_attempt(bench: KubernetesBench) -> None:
    job = torch(bench, role("sleep 60"), grace_s=1)
    handle = bench.backend.submit(job)
    wait_until_running(bench, handle)
    bench.api.delete(f"/apis/{V1}/namespaces/{bench.namespace}/pytorchjobs/{job.key}")
    seen = wait_until_over(bench.backend, handle)
    assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode.NODE_LOST)
    assert seen.reason.params["kubernetes"] == "Deleted"


def test_pod_that_the_operator_makes_again_does_not_run_the_attempt_twice(bench: KubernetesBench) -> None:
    job = torch(bench, role("echo once; sleep 60"), grace_s=1)
    handle = bench.backend.submit(job)
    wait_until_running(bench, handle)
    (before,) = bench.pods()
    path = f"/api/v1/namespaces/{bench.namespace}/pods/{job.key}-worker-0"
    bench.api.delete(path, grace_s=0)

    def is_made_again() -> bool:
        with suppress(ApiError):
            return bool(bench.api.get(path)["metadata"]["uid"] != before["metadata"]["uid"])
        return False

    wait_for(is_made_again)
    seen = wait_until_over(bench.backend, handle)
    assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode.NODE_LOST)
    wait_for(lambda: not bench.processes())


def test_kind_that_is_removed_ends_its_jobs(bench: KubernetesBench, kubernetes: Cluster) -> None:
    job = bench.submission(role("sleep 60", name="master"), framework=Framework.XGBOOST, grace_s=1)
    handle = bench.backend.submit(job)
    wait_until_running(bench, handle)
    path = f"{CRDS}/xgboostjobs.kubeflow.org"
    definition = bench.api.get(path)
    bench.api.delete(path)
    try:
        seen = wait_until_over(bench.backend, handle)
        assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode.NODE_LOST)
        bench.backend.forget(handle)
    finally:
        about = {"name": definition["metadata"]["name"]}
        made = {"apiVersion": definition["apiVersion"], "kind": definition["kind"], "metadata": about}
        bench.api.create(CRDS, {**made, "spec": definition["spec"]})
        wait_for(lambda: serves(kubernetes, 3))


def test_second_attempt_runs_as_an_object_of_its_own(bench: KubernetesBench) -> None:
    first = torch(bench, role('[ "$APP_ID" != "${APP_ID%-1}-1" ] && echo again'))
    handle = bench.backend.submit(first)
    assert wait_until_over(bench.backend, handle).state is State.FAILED
    second = replace(first, key=f"{first.key.removesuffix('-1')}-2", attempt=2)
    again = bench.backend.submit(second)
    assert wait_until_over(bench.backend, again).state is State.SUCCEEDED
    assert log_of(bench.backend, again) == "again\n"
    assert job_of(bench, first.key) is not None


def test_operator_that_fails_a_job_before_its_pods_is_the_reason(
    bench: KubernetesBench, operator: TrainingOperator
) -> None:
    operator.is_away = True
    job = torch(bench, role("true"))
    handle = bench.backend.submit(job)
    path = f"/apis/{V1}/namespaces/{bench.namespace}/pytorchjobs/{job.key}"
    failed = {"type": "Failed", "status": "True", "reason": "PyTorchJobFailed", "message": "it is not valid"}
    bench.api.patch(f"{path}/status", {"status": {"conditions": [failed]}})
    seen = wait_until_over(bench.backend, handle)
    assert seen.state is State.FAILED
    assert reason_message(seen.reason.code, seen.reason.params) == (
        "Kubeflow's operator could not run the job: it is not valid"
    )


@pytest.fixture
def kueue(kubernetes: Cluster, operator: TrainingOperator) -> Iterator[str]:
    """The path of Kueue's Workloads: its schema is there, and the tests say what it would."""
    with install(kubernetes.api, "kueue.x-k8s.io"):
        wait_for(lambda: serves(kubernetes, 3, kueue=True))
        yield "/apis/kueue.x-k8s.io/v1beta2/namespaces/{}/workloads"
    wait_for(lambda: serves(kubernetes, 3))


def tell(bench: KubernetesBench, path: str, **conditions: tuple[str, str]) -> None:
    """Have Kueue say of the only Workload: a condition's name → its status, and its text."""
    now = "2026-11-28T07:00:00Z"
    said = [
        {"type": kind, "status": status, "reason": kind, "message": text, "lastTransitionTime": now}
        for kind, (status, text) in conditions.items()
    ]
    bench.api.patch(f"{path}/status", {"status": {"conditions": said}})


def test_job_in_a_queue_of_kueue_waits_with_its_reason_runs_and_is_evicted(
    bench: KubernetesBench, kueue: str
) -> None:
    assert "Kueue" in (getattr(bench.backend.inventory().facilities, "operators", ()))
    assert bench.backend.check().lacking == ()
    job = torch(bench, role("sleep 60"), tags={"kueue.x-k8s.io/queue-name": "team"}, grace_s=1)
    handle = bench.backend.submit(job)
    made = job_of(bench, job.key)
    assert made is not None
    assert made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team"
    assert made["spec"]["runPolicy"]["suspend"] is True
    owner = {"apiVersion": V1, "kind": "PyTorchJob", "name": job.key, "uid": made["metadata"]["uid"]}
    name = f"pytorchjob-{job.key}"
    pod = {"containers": [{"name": "pytorch", "image": "a"}]}
    spec = {"queueName": "team", "podSets": [{"name": "worker", "count": 1, "template": {"spec": pod}}]}
    workload = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "spec": spec}
    path = kueue.format(bench.namespace)
    bench.api.create(path, {**workload, "metadata": {"name": name, "ownerReferences": [owner]}})
    path = f"{path}/{name}"

    def why() -> str:
        seen = observe(bench, handle)
        assert seen.state is State.PENDING
        return reason_message(seen.reason.code, seen.reason.params)

    tell(bench, path, QuotaReserved=("False", "insufficient unused quota for cpu, 2 more needed"))
    assert why() == "Waiting in Kueue's queue: insufficient unused quota for cpu, 2 more needed"
    tell(bench, path, QuotaReserved=("True", "reserved"))
    assert why() == "Waiting in Kueue: quota is reserved, but not all admission checks have passed."
    tell(bench, path, QuotaReserved=("False", "pending"), Evicted=("True", "its cluster queue is stopped"))
    assert why() == "Waiting in Kueue after an eviction: its cluster queue is stopped"
    assert bench.pods() == []
    tell(bench, path, QuotaReserved=("True", "reserved"), Admitted=("True", "admitted"))
    jobs = f"/apis/{V1}/namespaces/{bench.namespace}/pytorchjobs/{job.key}"
    bench.api.patch(jobs, {"spec": {"runPolicy": {"suspend": False}}})
    wait_until_running(bench, handle)
    preempted = {"Evicted": ("True", "preempted"), "Preempted": ("True", "for a job of more weight")}
    tell(bench, path, QuotaReserved=("False", "pending"), Admitted=("False", "evicted"), **preempted)
    bench.api.patch(jobs, {"spec": {"runPolicy": {"suspend": True}}})
    seen = wait_until_over(bench.backend, handle)
    assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode.NODE_LOST)
    assert seen.reason.params["kubernetes"] == "Preempted"
    bench.api.delete(path)


def test_job_without_a_framework_goes_as_plain_pods(bench: KubernetesBench) -> None:
    handle = bench.backend.submit(bench.submission(role("hostname")))
    assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED
    assert log_of(bench.backend, handle) == "worker-0\n"
