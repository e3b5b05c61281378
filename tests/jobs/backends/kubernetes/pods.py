"""Pods of one container, made without a backend."""

import secrets
from typing import Any

from tests.kubernetes import images
from tests.kubernetes.cluster import Cluster
from tests.waiting import wait_for

DRAIN = "sleep 1"
"""Debian's containerd loses what a process has just written when it ends: more than fits into a pipe."""


def container(command: str, image: str = images.BASE, **more: Any) -> dict[str, Any]:
    """A container that runs a command line."""
    argv = ["/bin/sh", "-c", command] if command else None
    return {"name": "main", "image": image, "imagePullPolicy": "Never", "command": argv, **more}


def start_pod(
    kubernetes: Cluster,
    namespace: str,
    command: str,
    node: str = "",
    **more: Any,
) -> str:
    """Start a pod of one container, wait until it runs or has ended, and return its name."""
    name = f"pod-{secrets.token_hex(3)}"
    pods = f"/api/v1/namespaces/{namespace}/pods"
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "nodeName": node}
    made = {"metadata": {"name": name}, "spec": {**spec, "containers": [container(command, **more)]}}
    kubernetes.api.create(pods, made)
    wait_for(lambda: kubernetes.api.get(f"{pods}/{name}")["status"]["phase"] != "Pending")
    return name
