"""Two people in two namespaces, and a console with the rights of deploy/kubernetes and no others."""

from collections.abc import Iterator
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path

import pytest
import yaml

from jobs.backends.base import Handle, Person, ReplicaRef, Unreachable
from jobs.backends.kubernetes import rights
from jobs.backends.kubernetes.backend import KubernetesBackend
from jobs.backends.kubernetes.client.api import Api, ApiError
from jobs.backends.kubernetes.client.connection import from_settings
from jobs.backends.kubernetes.config import KubernetesConfig
from jobs.backends.sessions import NoEntry, SessionKind, SessionRequest
from jobs.spec import Mount, SecretRef
from jobs.states import State
from tests.jobs.backends.benches import log_of, role, wait_until_over
from tests.jobs.backends.kubernetes.accounts import RBAC, bind, read_token
from tests.jobs.backends.kubernetes_bench import KubernetesBench
from tests.kubernetes.cluster import Cluster
from tests.waiting import wait_for


@pytest.fixture
def least(tmp_path: Path, kubernetes: Cluster, namespace: str, account: str) -> Iterator[KubernetesBench]:
    """A console with the rights of the file."""
    made = KubernetesBench(tmp_path, kubernetes, namespace, {"token": account})
    yield made
    made.close()


async def test_least_rights_suffice_for_the_life_of_a_job(least: KubernetesBench) -> None:
    assert least.backend.check().lacking == ()
    assert least.backend.try_as(Person("alice", 7)) == str(least.config.uid_of(7))
    job = least.submission(role("echo $SECRET; sleep 60"), secret_env={"SECRET": SecretRef(name="a")})
    handle = least.backend.submit(replace(job, secrets={"a": "hunter"}))
    wait_for(lambda: log_of(least.backend, handle) == "hunter\n")
    assert least.backend.find([job.key])[job.key] == [handle]
    session = await least.backend.exec(
        handle, ReplicaRef("worker", 0), SessionRequest(SessionKind.LINE, line="echo inside")
    )
    assert await session.read(100) == b"inside\n"
    await session.close()
    least.backend.stop(handle, grace_s=1, signal="TERM")
    assert wait_until_over(least.backend, handle).state is State.STOPPED
    least.backend.forget(handle)


def test_console_can_not_read_secrets_nor_act_in_other_namespaces(
    least: KubernetesBench, kubernetes: Cluster
) -> None:
    api = Api(from_settings(kubernetes.server, token=str(least.told["token"]), ca=kubernetes.ca))
    for path in (
        f"/api/v1/namespaces/{least.namespace}/secrets",
        "/api/v1/namespaces/kube-system/configmaps",
        "/api/v1/namespaces/kube-system/pods/any/log",
    ):
        with pytest.raises(ApiError) as refused:
            api.get(path)
        assert refused.value.status == HTTPStatus.FORBIDDEN
    with pytest.raises(ApiError) as refused:
        api.create("/api/v1/namespaces/kube-system/pods", {"metadata": {"name": "a"}, "spec": {}})
    assert refused.value.status == HTTPStatus.FORBIDDEN


def test_rights_that_are_checked_are_those_of_the_file() -> None:
    roles = {
        each["metadata"]["name"]: {
            (resource, verb)
            for rule in each["rules"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }
        for each in yaml.safe_load_all(RBAC.read_text())
        if each["kind"] == "ClusterRole"
    }
    checked = {
        "job-console-cluster": {(name, verb) for name, verbs in rights.CLUSTER for verb in verbs.split()},
        "job-console-jobs": {
            (name, verb)
            for name, verbs in (*rights.NAMESPACED, *rights.OPERATORS.values())
            for verb in verbs.split()
        },
    }
    assert roles == checked


def test_connection_test_names_each_missing_right(
    least: KubernetesBench, kubernetes: Cluster, tmp_path: Path
) -> None:
    with kubernetes.make_namespace() as other:
        config = KubernetesConfig.from_settings(tmp_path, {**least.told, "namespace": other})
        lacking = KubernetesBackend(config).check().lacking
        assert f"Missing right: create pods in {other}" in lacking
        assert f"Missing right: get pods/log in {other}" in lacking
        weak = read_token(kubernetes, other, "default")
        config = KubernetesConfig.from_settings(tmp_path, {**least.told, "token": weak})
        with pytest.raises(Unreachable):
            KubernetesBackend(config).check()


async def test_nobody_reaches_the_job_of_another_workspace(
    least: KubernetesBench, kubernetes: Cluster, tmp_path: Path
) -> None:
    """Alice's job runs in her workspace's namespace; Bob's file and handles name it, and get nowhere."""
    with kubernetes.make_namespace() as hers:
        bind(kubernetes, hers)
        settings = {**least.told, "namespace": hers}
        alice = KubernetesBackend(KubernetesConfig.from_settings(tmp_path / "alice", settings))
        job = least.submission(role("echo secret of alice; sleep 60"))
        handle = alice.submit(job)
        alice.release([handle])
        wait_for(lambda: alice.read_log(handle, ReplicaRef("worker", 0), "", 100).data)
        bob = least.backend
        forged = [handle, Handle(f"{least.namespace}/{job.key}"), Handle(f"{hers}/{job.key}/../x")]
        for each in forged:
            bob.stop(each, grace_s=0, signal="KILL")
            assert bob.read_log(each, ReplicaRef("worker", 0), "", 100).data == b""
            with pytest.raises(NoEntry):
                await bob.exec(each, ReplicaRef("worker", 0), SessionRequest(SessionKind.LINE, line="id"))
        claim = Mount(uri=f"pvc://{job.key.partition('-')[0]}-job0-checkpoints", path="/mnt/a")
        (refused,) = bob.dry_run(least.submission(mounts=(claim,), person=Person("bob", 8)))
        assert refused.ok is False
        key = job.key
        peek = f"python3 -c \"import socket; socket.gethostbyname('worker-0.{key}')\" 2>&1; exit 0"
        theirs = bob.submit(least.submission(role(peek), person=Person("bob", 8)))
        wait_until_over(bob, theirs)
        assert "gaierror" in log_of(bob, theirs)
        (seen,) = alice.observe([handle]).values()
        assert getattr(seen, "state", None) is State.RUNNING
        alice.stop(handle, grace_s=0, signal="KILL")
        wait_until_over(alice, handle)


def test_pod_of_another_maker_with_our_labels_is_not_ours(
    least: KubernetesBench, kubernetes: Cluster
) -> None:
    """Whoever may create pods elsewhere can write our labels there, and changes nothing of our job."""
    job = least.submission(role("sleep 60"))
    handle = least.backend.submit(job)
    with kubernetes.make_namespace() as other:
        labels = {"job-console/key": job.key, "job-console/installation": least.installation}
        forged = {
            "metadata": {"name": f"{job.key}-worker-0", "labels": labels},
            "spec": {
                "restartPolicy": "Never",
                "containers": [
                    {"name": "main", "image": "localhost/base:12", "command": ["sh", "-c", "exit 9"]}
                ],
            },
        }
        kubernetes.api.create(f"/api/v1/namespaces/{other}/pods", forged)
        path = f"/api/v1/namespaces/{other}/pods/{job.key}-worker-0"
        wait_for(lambda: kubernetes.api.get(path)["status"]["phase"] == "Failed")
        (seen,) = least.backend.observe([handle]).values()
        assert getattr(seen, "state", None) in (State.PENDING, State.RUNNING)
        least.backend.stop(handle, grace_s=0, signal="KILL")
        assert wait_until_over(least.backend, handle).state is State.STOPPED
        assert kubernetes.api.get(path)["status"]["phase"] == "Failed"
