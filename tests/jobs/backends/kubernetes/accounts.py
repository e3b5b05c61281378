"""Accounts with the rights of deploy/kubernetes, on a real cluster."""

import base64

from tests.jobs.backends.benches import CHECKOUT
from tests.kubernetes.cluster import Cluster
from tests.waiting import wait_for

RBAC = CHECKOUT / "deploy/kubernetes/rbac.yaml"


def read_token(kubernetes: Cluster, namespace: str, account: str) -> str:
    """The token of a service account, which Kubernetes 1.20 makes itself."""
    path = f"/api/v1/namespaces/{namespace}"

    def names() -> list[str]:
        found = kubernetes.api.get(f"{path}/serviceaccounts/{account}")
        return [each["name"] for each in found.get("secrets") or ()]

    name = wait_for(names)[0]
    data = kubernetes.api.get(f"{path}/secrets/{name}")["data"]
    return base64.b64decode(data["token"]).decode()


def bind(kubernetes: Cluster, namespace: str) -> None:
    """Give the console's account its rights in a namespace, as the file says."""
    kubernetes.kubectl(
        *("create", "rolebinding", "job-console", "--namespace", namespace),
        *("--clusterrole", "job-console-jobs", "--serviceaccount", "job-console:job-console"),
    )
