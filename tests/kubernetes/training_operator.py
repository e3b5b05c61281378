"""A stand-in for Kubeflow's training operator: it reconciles its objects on a real API server, and is not it.

It does what training-operator v1.9 does with PyTorchJob, TFJob and XGBoostJob, as far as jobs here depend on
it: pods and Services with its names, labels and variables, conditions, suspension, and pods that are made
again.  It has no webhook, no gang scheduling, and no restart policy but Never.
"""

from __future__ import annotations

import contextlib
import json
import lzma
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Self

from console.home import CHECKOUT
from jobs.backends.base import Unreachable
from jobs.backends.kubernetes.client.api import Api, ApiError
from tests.kubernetes import images
from tests.waiting import wait_for

Object = dict[str, Any]

CRDS = CHECKOUT / "tests/data/kubernetes/operators.json.xz"
PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "/apis/kubeflow.org/v1"
LABEL = "training.kubeflow.org"
KINDS = {
    "PyTorchJob": ("pytorchReplicaSpecs", "pytorch", "pytorchjob-port", 23456),
    "TFJob": ("tfReplicaSpecs", "tensorflow", "tfjob-port", 2222),
    "XGBoostJob": ("xgbReplicaSpecs", "xgboost", "xgboostjob-port", 9999),
}
"""Kind → the key of its roles, its container, its port's name, and the port of a container without one."""
DECIDERS = ("Master", "Chief", "Launcher")
PAUSE_S = 0.1


@contextlib.contextmanager
def install(api: Api, group: str) -> Iterator[None]:
    """Have the kinds of a group served, as their CustomResourceDefinitions say."""
    found = [
        each for each in json.loads(lzma.decompress(CRDS.read_bytes())) if each["spec"]["group"] == group
    ]
    for each in found:
        api.create(PATH, each)
    for each in found:
        name, version = each["spec"]["names"]["plural"], each["spec"]["versions"][0]["name"]
        wait_for(lambda name=name, version=version: _is_served(api, f"/apis/{group}/{version}/{name}"))  # type: ignore[misc]
    yield
    for each in found:
        api.delete(f"{PATH}/{each['metadata']['name']}")
    for each in found:
        wait_for(lambda each=each: not _is_served(api, f"{PATH}/{each['metadata']['name']}"))  # type: ignore[misc]


def _is_served(api: Api, path: str) -> bool:
    try:
        api.get(path)
    except (ApiError, Unreachable):  # without the group it is no answer of the API server's own
        return False
    return True


class TrainingOperator:
    """The stand-in, as a thread; `is_away` has it do nothing."""

    def __init__(self, api: Api) -> None:
        self._api, self._ended, self.is_away = api, threading.Event(), False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        """Start."""
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """End."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(PAUSE_S):
            for kind in () if self.is_away else KINDS:
                for job in self._list(f"{GROUP}/{kind.lower()}s"):
                    with contextlib.suppress(ApiError, Unreachable):  # it has changed meanwhile: next time
                        _Reconciled(self._api, job).reconcile()

    def _list(self, path: str) -> tuple[Object, ...]:
        with contextlib.suppress(ApiError, Unreachable):
            return self._api.list(path).items
        return ()


class _Reconciled:
    """One object, looked at once."""

    def __init__(self, api: Api, job: Object) -> None:
        self._api, self._job, about = api, job, job["metadata"]
        self._name, self._core = about["name"], f"/api/v1/namespaces/{about['namespace']}"
        self._specs, self._container, self._port_name, self._port = KINDS[job["kind"]]
        self._roles: Mapping[str, Object] = job["spec"][self._specs]
        self._conditions = {each["type"]: each for each in (job.get("status") or {}).get("conditions") or ()}

    def reconcile(self) -> None:
        """Make what lacks, and say how it is."""
        if (
            self._job["metadata"].get("deletionTimestamp")
            or self._holds("Succeeded")
            or self._holds("Failed")
        ):
            return
        own = f"{LABEL}/job-name={self._name}"
        pods = {
            each["metadata"]["name"]: each for each in self._api.list(f"{self._core}/pods", labels=own).items
        }
        self._say("Created", "is created.")
        if self._job["spec"]["runPolicy"].get("suspend"):
            for name in pods:
                self._api.delete(f"{self._core}/pods/{name}")
            self._say("Suspended", "is suspended.")
            return
        if self._holds("Suspended"):
            self._say("Suspended", "is resumed.", holds="False")
        for role, spec in self._roles.items():
            for index in range(spec["replicas"]):
                if self._replica(role, index) not in pods:
                    self._create(role, index)
        self._judge(pods)

    def _judge(self, pods: Mapping[str, Object]) -> None:
        """Say how the job is, by the phases of its pods."""
        decider = next((role for role in DECIDERS if role in self._roles), "Worker")
        phases = {
            role: [
                ((pods.get(self._replica(role, index)) or {}).get("status") or {}).get("phase")
                for index in range(spec["replicas"])
            ]
            for role, spec in self._roles.items()
        }
        failed = {role: each.count("Failed") for role, each in phases.items() if "Failed" in each}
        if failed:
            role, count = next(iter(failed.items()))
            self._say("Failed", f"is failed because {count} {role} replica(s) failed.")
        elif set(phases[decider]) == {"Succeeded"}:
            self._say("Succeeded", "is successfully completed.")
        elif "Running" in phases[decider]:
            self._say("Running", "is running.")

    def _replica(self, role: str, index: int) -> str:
        return f"{self._name}-{role.lower()}-{index}"

    def _create(self, role: str, index: int) -> None:
        about, template = self._job["metadata"], self._roles[role]["template"]
        labels = {
            f"{LABEL}/operator-name": f"{self._job['kind'].lower()}-controller",
            f"{LABEL}/job-name": self._name,
            f"{LABEL}/replica-type": role.lower(),
            f"{LABEL}/replica-index": str(index),
        }
        owner = {"apiVersion": "kubeflow.org/v1", "kind": self._job["kind"], "name": self._name}
        owners = [{**owner, "uid": about["uid"], "controller": True, "blockOwnerDeletion": True}]
        name = self._replica(role, index)
        spec = {**template["spec"], "restartPolicy": self._roles[role]["restartPolicy"]}
        containers = [{**each, "env": [*(each.get("env") or ())]} for each in spec["containers"]]
        for each in containers:
            each["env"] += [
                {"name": key, "value": value} for key, value in self._variables(role, index).items()
            ]
        spec["containers"] = containers
        if self._job["kind"] == "PyTorchJob" and role == "Worker" and "Master" in self._roles:
            master = self._replica("Master", 0)
            wait = f"for i in $(seq 100); do getent hosts {master} && exit; sleep 0.1; done; exit 1"
            first = {"name": "init-pytorch", "image": images.BASE, "command": ["sh", "-c", wait]}
            spec["initContainers"] = [*(spec.get("initContainers") or ()), first]
        made = {"name": name, "ownerReferences": owners}
        pod = {**made, "labels": {**template["metadata"]["labels"], **labels}}
        service = {"clusterIP": "None", "selector": labels, "ports": [{"port": self._find_port(role)}]}
        with contextlib.suppress(ApiError):
            self._api.create(
                f"{self._core}/services", {"metadata": {**made, "labels": labels}, "spec": service}
            )
        self._api.create(f"{self._core}/pods", {"metadata": pod, "spec": spec})

    def _variables(self, role: str, index: int) -> dict[str, str]:
        """Return what is added to the containers of a replica."""
        kind, total = self._job["kind"], sum(spec["replicas"] for spec in self._roles.values())
        if kind == "TFJob":
            domain = f"{self._job['metadata']['namespace']}.svc"
            cluster = {
                each.lower(): [
                    f"{self._replica(each, number)}.{domain}:{self._find_port(each)}"
                    for number in range(spec["replicas"])
                ]
                for each, spec in self._roles.items()
            }
            task = {"type": role.lower(), "index": index}
            config = {"cluster": cluster, "task": task, "environment": "cloud"}
            return {"TF_CONFIG": json.dumps(config)} if total > 1 else {}
        found = {"PYTHONUNBUFFERED": "1"}
        if "Master" in self._roles:
            rank = str(index + (role == "Worker"))
            master, port = self._replica("Master", 0), str(self._find_port("Master"))
            found |= {"MASTER_ADDR": master, "MASTER_PORT": port, "WORLD_SIZE": str(total), "RANK": rank}
            if kind == "PyTorchJob":
                found |= {"PET_MASTER_ADDR": master, "PET_MASTER_PORT": port, "PET_NODE_RANK": rank}
        if kind == "PyTorchJob":
            found |= {"PET_NPROC_PER_NODE": "auto", "PET_NNODES": str(total)}
        return found

    def _find_port(self, role: str) -> int:
        containers = self._roles[role]["template"]["spec"]["containers"]
        main = next(each for each in containers if each["name"] == self._container)
        named = {each.get("name"): int(each["containerPort"]) for each in main.get("ports") or ()}
        return named.get(self._port_name, self._port)

    def _holds(self, kind: str) -> bool:
        return (self._conditions.get(kind) or {}).get("status") == "True"

    def _say(self, kind: str, text: str, holds: str = "True") -> None:
        """Set a condition, unless it is so."""
        if (self._conditions.get(kind) or {}).get("status") == holds:
            return
        said = {"type": kind, "status": holds, "reason": f"{self._job['kind']}{kind}"}
        self._conditions[kind] = {**said, "message": f"{self._job['kind']} {self._name} {text}"}
        jobs = f"{GROUP}/namespaces/{self._job['metadata']['namespace']}/{self._job['kind'].lower()}s"
        status = {"conditions": list(self._conditions.values())}
        self._api.patch(f"{jobs}/{self._name}/status", {"status": status})
