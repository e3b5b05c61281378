"""A whole console with a Kubernetes: a log is read while its job runs, and kept when the pod is gone."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx
import pytest

from tests.kubernetes import images
from tests.kubernetes.cluster import Cluster
from tests.stack import Stack, running
from tests.waiting import wait_for

JOBS = "/api/console/v1/jobs"


@pytest.fixture
def stack(kubernetes: Cluster, namespace: str) -> Iterator[Stack]:
    """A console with that cluster, which has a namespace for it."""
    config = {
        "url": kubernetes.server,
        "ca": kubernetes.ca,
        "token": kubernetes.token,
        "namespace": namespace,
    }
    quotas = {"far": {"all": {"name": "All of it"}}}
    site = {"version": 1, "workspaces": {"default": {"name": "Default", "quotas": quotas}}}
    with running() as stack:
        about = ("--backend", "kubernetes", "--admission", "console", "--config", "-")
        stack.manage("add_cluster", "far", *about, stdin=json.dumps(config))
        stack.manage("apply", "-", stdin=json.dumps(site))
        yield stack


def manifest(command: str) -> str:
    """A PyTorchJob of one replica."""
    container = {
        "name": "pytorch",
        "image": images.BASE,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", command],
        "resources": {"limits": {"cpu": "100m", "memory": "64Mi"}},
    }
    worker = {"replicas": 1, "restartPolicy": "Never", "template": {"spec": {"containers": [container]}}}
    return json.dumps(
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": {"name": "live"},
            "spec": {"pytorchReplicaSpecs": {"Worker": worker}},
        }
    )


def job(client: httpx.Client, number: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"{JOBS}/{number}").raise_for_status().json()
    return found


def log(client: httpx.Client, number: str) -> bytes:
    """What the log of the only replica has."""
    answer = client.get(f"{JOBS}/{number}/logs?role=Worker&index=0")
    return answer.content if answer.is_success else b""


@pytest.mark.timeout(400)
def test_log_is_read_while_the_job_runs_and_kept(stack: Stack, kubernetes: Cluster, namespace: str) -> None:
    text = manifest("echo one; until [ -e /tmp/go ]; do sleep 0.1; done; echo two; sleep 1")
    with closing(stack.client()) as client:
        answer = client.post(JOBS, json={"file": text, "cluster": "far"})
        number = answer.raise_for_status().json()["id"]
        wait_for(lambda: log(client, number) == b"one\n", 120, interval=0.2)
        wait_for(lambda: job(client, number)["state"] == "RUNNING", 120, interval=0.2)
        stack.kill("watch")
        pods = f"/api/v1/namespaces/{namespace}/pods"
        [pod] = [each["metadata"]["name"] for each in kubernetes.api.list(pods).items]
        kubernetes.kubectl("exec", f"--namespace={namespace}", pod, "--", "touch", "/tmp/go")
        wait_for(lambda: job(client, number)["state"] == "SUCCEEDED", 120, interval=0.2)
        assert log(client, number) == b"one\ntwo\n"
        kubernetes.api.delete(f"{pods}/{pod}", grace_s=1)
        wait_for(
            lambda: client.get(f"{JOBS}/{number}/logs?role=Worker&index=0").headers["X-State"] == "complete",
            120,
        )
        assert log(client, number) == b"one\ntwo\n"
