"""The manifests of deploy/kubernetes: what a real API server says of them, and what no pod may do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import yaml

from jobs.backends.kubernetes.client.api import ApiError
from tests.jobs.backends.benches import CHECKOUT
from tests.kubernetes.cluster import Cluster

MANIFESTS: Final = CHECKOUT / "deploy" / "kubernetes"
VOLUMES: Final = {"configMap", "emptyDir", "persistentVolumeClaim", "projected", "secret"}
"""Kinds that the Pod Security Standard *restricted* allows, of those that are used."""

TOKEN: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
ASKING: Final = {"control", "gateway", "logs", "watch"}
"""The containers whose programs ask clusters."""

Object = dict[str, Any]


def read_objects(kubernetes: Cluster) -> list[Object]:
    """Return the objects, for a Kubernetes of 1.20, which has PodDisruptionBudgets in a beta alone."""
    text = kubernetes.kubectl("kustomize", str(MANIFESTS))
    return list(yaml.safe_load_all(text.replace("apiVersion: policy/v1\n", "apiVersion: policy/v1beta1\n")))


def pod_specs(objects: list[Object]) -> Iterator[tuple[str, Object]]:
    """Yield the pods' specs by the names of what has them."""
    for each in objects:
        if each["kind"] in ("Deployment", "Job"):
            yield each["metadata"]["name"], each["spec"]["template"]["spec"]


def move(objects: list[Object], namespace: str) -> list[Object]:
    """Put the objects into another namespace."""
    for each in objects:
        if "namespace" in each["metadata"]:
            each["metadata"]["namespace"] = namespace
        for subject in each.get("subjects", ()):
            subject["namespace"] = namespace
    return [each for each in objects if each["kind"] != "Namespace"]


def test_manifests_are_taken_by_the_api_server(kubernetes: Cluster, namespace: str) -> None:
    objects = move(read_objects(kubernetes), namespace)
    text = yaml.safe_dump_all(objects)
    answers = kubernetes.kubectl("apply", "--dry-run=server", "-f", "-", stdin=text).splitlines()
    assert len(answers) == len(objects)
    assert {each.partition(" ")[2] for each in answers} == {"created (server dry run)"}


def test_pods_fit_a_quota_that_wants_limits_of_all(kubernetes: Cluster, namespace: str) -> None:
    api, root = kubernetes.api, f"/api/v1/namespaces/{namespace}"
    hard = {"limits.cpu": "100", "limits.memory": "100Gi", "requests.cpu": "50", "requests.memory": "50Gi"}
    api.create(f"{root}/resourcequotas", {"metadata": {"name": "all"}, "spec": {"hard": hard}})
    api.create(f"{root}/serviceaccounts", {"metadata": {"name": "job-console"}})
    try:
        for name, spec in pod_specs(read_objects(kubernetes)):
            pod = {"metadata": {"name": name}, "spec": spec}
            api.create(f"{root}/pods", pod, dry_run=True)
    except ApiError as error:
        raise AssertionError(f"{name}: {error.message}") from error
    finally:
        api.delete(f"{root}/resourcequotas/all")
        api.delete(f"{root}/serviceaccounts/job-console")


def test_pods_have_no_rights_on_their_nodes(kubernetes: Cluster) -> None:
    for name, spec in pod_specs(read_objects(kubernetes)):
        whole = spec["securityContext"]
        assert whole["runAsNonRoot"], name
        assert whole["runAsUser"] == 10001, name
        assert whole["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec), name
        assert {kind for each in spec["volumes"] for kind in each if kind != "name"} <= VOLUMES, name
        for each in (*spec.get("initContainers", ()), *spec["containers"]):
            own = each["securityContext"]
            assert not own["allowPrivilegeEscalation"], each["name"]
            assert own["readOnlyRootFilesystem"], each["name"]
            assert own["capabilities"] == {"drop": ["ALL"]}, each["name"]


def test_only_programs_that_ask_clusters_have_the_token_of_the_account(kubernetes: Cluster) -> None:
    having = set()
    for _name, spec in pod_specs(read_objects(kubernetes)):
        assert spec["automountServiceAccountToken"] is False
        for each in (*spec.get("initContainers", ()), *spec["containers"]):
            if TOKEN in {mount["mountPath"] for mount in each["volumeMounts"]}:
                having.add(each["name"])
    assert having == ASKING
