"""A whole console beside a cluster on which everything breaks: no job is lost, and none runs twice.

The judge is a file to which each replica appends the name of its attempt when it begins.  A pod that was lost
with its node, or was deleted, is followed by another attempt.
"""

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from django.db.models import F

from jobs import dialects
from jobs.dialects.document import Document
from jobs.models import Attempt, Job
from jobs.scheduling import admission, reconcile
from jobs.states import TERMINAL, ReasonCode, State
from jobs.submission import store
from quotas.models import Admission, Cluster, Membership, Quota, Role, User, Workspace
from tests.jobs.backends.benches import Submitter, as_told, submitter
from tests.jobs.backends.kubernetes_bench import IMAGE
from tests.kubernetes.cluster import Cluster as Kubernetes
from tests.kubernetes.faulty_proxy import EXPIRED, LOST, Answer, FaultyProxy, faulty_proxy
from tests.waiting import wait_for

pytestmark = pytest.mark.django_db

JOBS = int(os.environ.get("KUBERNETES_JOBS", "20"))
JOBS_OF_A_FAULT: Final = int(os.environ.get("KUBERNETES_JOBS", "5"))
PATIENCE_S = 240 + 5 * JOBS


@dataclass
class Console:
    """A console with one cluster that a test may hurt."""

    kubernetes: Kubernetes
    proxy: FaultyProxy
    folder: Path
    quota: Quota
    namespace: str
    settings: dict[str, Any]
    frozen: list[Submitter] = field(default_factory=list)

    @property
    def judge(self) -> Path:
        return self.folder / "judge"

    def begun(self) -> list[str]:
        """The attempts whose replica began, each time that it did."""
        return (self.judge / "begun").read_text().splitlines()

    def submit(self, count: int) -> None:
        """PyTorchJobs, of which every fifth fails."""
        owner = User.objects.get(username="alice")
        for number in range(Job.objects.count(), Job.objects.count() + count):
            command = (
                f"echo $APP_ID >>/mnt/judge/begun; sleep 0.{number % 10}; exit {3 if fails(number) else 0}"
            )
            container = {
                "name": "pytorch",
                "image": IMAGE,
                "command": ["sh", "-c", command],
                "resources": {"limits": {"cpu": "100m", "memory": "32Mi"}},
                "volumeMounts": [{"name": "judge", "mountPath": "/mnt/judge"}],
            }
            pod = {
                "containers": [container],
                "volumes": [{"name": "judge", "hostPath": {"path": str(self.judge)}}],
            }
            worker = {"replicas": 1, "restartPolicy": "Never", "template": {"spec": pod}}
            manifest = {
                "apiVersion": "kubeflow.org/v1",
                "kind": "PyTorchJob",
                "metadata": {"name": f"job-{number}"},
                "spec": {"pytorchReplicaSpecs": {"Worker": worker}},
            }
            parsed = dialects.get("kubeflow").parse(Document(yaml.safe_dump(manifest)))
            store(owner, Document("{}", "kubeflow").with_parsed(parsed), self.quota)

    def step(self) -> None:
        """What workers do every two seconds."""
        reconcile.take_inventory(self.quota.cluster_id)
        admission.admit(self.quota.cluster_id)
        reconcile.drain(self.quota.cluster_id)
        reconcile.observe(self.quota.cluster_id)

    def freeze_a_worker(self, point: str) -> None:
        """Another worker that takes the next job and is stopped on the way."""
        reconcile.take_inventory(self.quota.cluster_id)
        admission.admit(self.quota.cluster_id)
        attempt = Attempt.objects.filter(job__cluster=self.quota.cluster, lease_token="").order_by("id")[0]
        assert reconcile.take_leases([attempt.pk])
        submission = reconcile._submission(attempt)
        faults = self.folder / point
        faults.mkdir()
        (faults / point).write_text("STOP")
        named = {**as_told(submission), "workspace": submission.workspace}
        told = {"kubernetes": self.settings, "home": str(self.folder), "submission": named}
        self.frozen.append(submitter(told, faults))
        wait_for(lambda: not (faults / point).exists(), 60)

    def runs(self, more: int) -> None:
        """Until so many more replicas have begun."""
        enough = min(len(self.begun()) + more, Job.objects.count())
        wait_for(lambda: self.over() or len(self.begun()) >= enough, PATIENCE_S, interval=0.5)

    def over(self) -> bool:
        self.step()
        return not Job.objects.exclude(state__in=[state.value for state in TERMINAL]).exists()

    def delete_a_pod(self) -> bool:
        """Delete a pod that runs, as an admin may; return whether there was one."""
        if (path := self._find_pod()) is not None:
            self.kubernetes.api.delete(path, grace_s=1)
        return path is not None

    def evict_a_pod(self) -> bool:
        """Evict a pod that runs, by the API of evictions; return whether there was one."""
        if (path := self._find_pod()) is not None:
            about = {"name": path.rpartition("/")[2], "namespace": self.namespace}
            eviction = {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": about}
            self.kubernetes.api.create(f"{path}/eviction", eviction)
        return path is not None

    def _find_pod(self) -> str | None:
        """Return the path of a pod that waits or runs, None for none."""
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        pods = self.kubernetes.api.list(path, labels="job-console/key").items
        live = (pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] in ("Pending", "Running"))
        return next((f"{path}/{name}" for name in live), None)

    def assert_each_job_ended_right_and_began_once(self) -> None:
        """Compare what the jobs wrote themselves with what the console says of them."""
        wrong = [
            (job.name, job.state, job.reason_code, job.reason_params)
            for job in Job.objects.all()
            if not is_right(job)
        ]
        assert not wrong
        begun = Counter(self.begun())
        assert set(begun.values()) == {1}, "no attempt began twice"
        last = {attempt.key for attempt in Attempt.objects.filter(number=F("job__attempt_number"))}
        again = Attempt.objects.exclude(key__in=last)
        assert set(begun) == last | {attempt.key for attempt in again if attempt.key in begun}
        assert {attempt.reason_code for attempt in again} <= {ReasonCode.NODE_LOST}


@pytest.fixture
def proxy(kubernetes: Kubernetes) -> Iterator[FaultyProxy]:
    with faulty_proxy(kubernetes) as made:
        yield made


@pytest.fixture
def console(
    kubernetes: Kubernetes, proxy: FaultyProxy, namespace: str, tmp_path: Path, settings: Any
) -> Iterator[Console]:
    settings.CONSOLE_HOME = settings.CONSOLE_SHARED_FOLDER = tmp_path
    judge = tmp_path / "judge"
    judge.mkdir()
    judge.chmod(0o777)
    (judge / "begun").touch()
    (judge / "begun").chmod(0o666)
    config = {
        "url": proxy.url,
        "ca": kubernetes.ca,
        "token": kubernetes.token,
        "namespace": namespace,
        "folders": {str(judge): {"workspaces": ["vision"], "write": True}},
        "timeout_s": 5,
    }
    owner = User.objects.create_user("alice")
    workspace = Workspace.objects.create(slug="vision", name="Vision")
    Membership.objects.create(workspace=workspace, user=owner, role=Role.DEVELOPER)
    cluster = Cluster.objects.create(
        slug="pods", name="pods", backend="kubernetes", config=config, admission=Admission.CONSOLE
    )
    reconcile.take_inventory(cluster.pk)
    quota = Quota.objects.create(workspace=workspace, cluster=cluster, slug="pods", name="pods")
    made = Console(kubernetes, proxy, tmp_path, quota, namespace, config)
    yield made
    for each in made.frozen:
        each.end()


@pytest.mark.timeout(1800)
def test_console_loses_no_job_and_runs_none_twice_while_the_cluster_breaks(console: Console) -> None:
    kubernetes = console.kubernetes
    console.submit(JOBS // 2)
    console.freeze_a_worker("kubernetes.submitted")
    console.runs(JOBS // 8)
    kubernetes.restart_control_plane()
    console.submit(JOBS // 4)
    console.runs(JOBS // 8)
    kubernetes.kill_kubelet(1)
    console.frozen[0].thaw()
    console.submit(JOBS - Job.objects.count())
    wait_for(lambda: console.over() or console.delete_a_pod(), PATIENCE_S)
    kubernetes.kill_kubelet(2)
    wait_for(console.over, PATIENCE_S, interval=0.5)
    console.assert_each_job_ended_right_and_began_once()


def is_change(method: str, path: str) -> bool:
    return method != "GET" and "dryRun" not in path


def is_list(method: str, path: str) -> bool:
    return method == "GET" and "labelSelector" in path


def is_any(_method: str, _path: str) -> bool:
    return True


ANSWERS: Final[dict[str, tuple[Answer, Callable[[str, str], bool], float]]] = {
    "lost after accept": (LOST, is_change, 0.2),
    "410": (HTTPStatus.GONE, is_list, 1),
    "429": (HTTPStatus.TOO_MANY_REQUESTS, is_any, 0.2),
    "503": (HTTPStatus.SERVICE_UNAVAILABLE, is_any, 0.2),
    "token expired": (EXPIRED, is_any, 0.2),
}
"""Answers of a busy or broken API server; which requests get them, until they were two for each job, and the
share of these that does."""


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("fault", ANSWERS)
def test_console_loses_no_job_and_runs_none_twice_by_answers(console: Console, fault: str) -> None:
    (answer, is_meant, share), drawn = ANSWERS[fault], random.Random(fault)

    def decide(method: str, path: str) -> Answer:
        is_on = console.proxy.faults < 2 * JOBS_OF_A_FAULT and is_meant(method, path)
        return answer if is_on and drawn.random() < share else None

    console.proxy.decide = decide
    console.submit(JOBS_OF_A_FAULT)
    wait_for(console.over, PATIENCE_S)
    assert console.proxy.faults >= JOBS_OF_A_FAULT // 2
    console.assert_each_job_ended_right_and_began_once()


@pytest.mark.timeout(1800)
def test_console_loses_no_job_and_runs_none_twice_beside_a_drain_and_evictions(console: Console) -> None:
    console.submit(JOBS_OF_A_FAULT)
    wait_for(lambda: console.over() or console.evict_a_pod(), PATIENCE_S)
    try:
        console.kubernetes.kubectl(
            *("drain", "node2", "--force", "--ignore-daemonsets", "--delete-emptydir-data"),
            *("--grace-period=1", "--timeout=60s"),
        )
        console.runs(JOBS_OF_A_FAULT // 2)
    finally:
        console.kubernetes.kubectl("uncordon", "node2")
    wait_for(lambda: console.over() or console.evict_a_pod(), PATIENCE_S)
    wait_for(console.over, PATIENCE_S)
    console.assert_each_job_ended_right_and_began_once()


def fails(number: int) -> bool:
    return number % 5 == 4


def is_right(job: Job) -> bool:
    if fails(int(job.name.removeprefix("job-"))):
        return (job.state, job.reason_code) == (State.FAILED, ReasonCode.EXIT_CODE)
    return job.state == State.SUCCEEDED
