"""The manifests of deploy/kubernetes: what a real API server says of them, and what no pod may do."""

from __future__ import annotations

from typing import Final

import yaml

from tests.kubernetes.cluster import Cluster
from tests.kubernetes.console_pods import UID, Object, list_containers, pod_specs, read_objects

VOLUMES: Final = {"configMap", "emptyDir", "persistentVolumeClaim", "projected", "secret"}
"""Kinds that the Pod Security Standard *restricted* allows, of those that are used."""

TOKEN: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
ASKING: Final = {"control", "gateway", "logs", "watch"}
"""The containers whose programs ask clusters."""


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
            api.create(f"{root}/pods", {"metadata": {"name": name}, "spec": spec}, dry_run=True)
    finally:
        api.delete(f"{root}/resourcequotas/all")
        api.delete(f"{root}/serviceaccounts/job-console")


def test_pods_have_no_rights_on_their_nodes(kubernetes: Cluster) -> None:
    for name, spec in pod_specs(read_objects(kubernetes)):
        whole = spec["securityContext"]
        assert whole["runAsNonRoot"], name
        assert whole["runAsUser"] == UID, name
        assert whole["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec), name
        assert {kind for each in spec["volumes"] for kind in each if kind != "name"} <= VOLUMES, name
        for each in list_containers(spec):
            own = each["securityContext"]
            assert not own["allowPrivilegeEscalation"], each["name"]
            assert own["readOnlyRootFilesystem"], each["name"]
            assert own["capabilities"] == {"drop": ["ALL"]}, each["name"]


def test_only_programs_that_ask_clusters_have_the_token_of_the_account(kubernetes: Cluster) -> None:
    having = set()
    for _name, spec in pod_specs(read_objects(kubernetes)):
        assert spec["automountServiceAccountToken"] is False
        for each in list_containers(spec):
            if TOKEN in {mount["mountPath"] for mount in each["volumeMounts"]}:
                having.add(each["name"])
    assert having == ASKING
