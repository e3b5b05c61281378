"""A whole console beside a cluster on which everything breaks: no job is lost, and none runs twice.

The judge is a file to which each replica appends the name of its attempt when it begins.  A pod that was lost
with its node, or was deleted, is followed by another attempt.
"""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
from tests.waiting import wait_for

pytestmark = pytest.mark.django_db

JOBS = int(os.environ.get("KUBERNETES_JOBS", "20"))
PATIENCE_S = 240 + 5 * JOBS


@dataclass
class Console:
    """A console with one cluster that a test may hurt."""

    kubernetes: Kubernetes
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
        enough = min(len(self.begun()) + more, JOBS)
        wait_for(lambda: self.over() or len(self.begun()) >= enough, PATIENCE_S, interval=0.5)

    def over(self) -> bool:
        self.step()
        return not Job.objects.exclude(state__in=[state.value for state in TERMINAL]).exists()

    def delete_a_pod(self) -> bool:
        """Delete a pod that runs, as an admin may; return whether there was one."""
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        for pod in self.kubernetes.api.list(path, labels="job-console/key").items:
            if pod["status"]["phase"] in ("Pending", "Running"):
                self.kubernetes.api.delete(f"{path}/{pod['metadata']['name']}", grace_s=1)
                return True
        return False


@pytest.fixture
def console(kubernetes: Kubernetes, namespace: str, tmp_path: Path, settings: Any) -> Iterator[Console]:
    settings.CONSOLE_HOME = settings.CONSOLE_SHARED_FOLDER = tmp_path
    judge = tmp_path / "judge"
    judge.mkdir()
    judge.chmod(0o777)
    (judge / "begun").touch()
    (judge / "begun").chmod(0o666)
    config = {
        "url": kubernetes.server,
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
    made = Console(kubernetes, tmp_path, quota, namespace, config)
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
    assert not [
        (job.name, job.state, job.reason_code, job.reason_params)
        for job in Job.objects.all()
        if not is_right(job)
    ]
    begun = Counter(console.begun())
    assert set(begun.values()) == {1}, "no attempt began twice"
    last = {attempt.key for attempt in Attempt.objects.filter(number=F("job__attempt_number"))}
    again = Attempt.objects.exclude(key__in=last)
    assert set(begun) == last | {attempt.key for attempt in again if attempt.key in begun}
    assert {attempt.reason_code for attempt in again} <= {ReasonCode.NODE_LOST}


def fails(number: int) -> bool:
    return number % 5 == 4


def is_right(job: Job) -> bool:
    if fails(int(job.name.removeprefix("job-"))):
        return (job.state, job.reason_code) == (State.FAILED, ReasonCode.EXIT_CODE)
    return job.state == State.SUCCEEDED
