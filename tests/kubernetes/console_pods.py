"""The console's own pods on the tests' cluster: its manifests, and the servers that a site would have.

No image is built: the pods run the tests' Debian, with the checkout and the environment's packages mounted.
"""

from __future__ import annotations

import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from console.home import CHECKOUT
from console.run import broker
from tests import postgres
from tests.kubernetes import images
from tests.kubernetes.cluster import Cluster
from tests.waiting import wait_for

MANIFESTS: Final = CHECKOUT / "deploy" / "kubernetes"
UID: Final = 10001
PACKAGES: Final = Path(sysconfig.get_path("purelib")).resolve()
PROGRAMS: Final = {"python": "", "celery": "-m celery", "job-console-server": "-m console"}
"""The programs that the image has, and how Debian's Python becomes each."""

Object = dict[str, Any]


def read_objects(kubernetes: Cluster) -> list[Object]:
    """Return the manifests' objects, for Kubernetes 1.20, where PodDisruptionBudgets are in a beta alone."""
    text = kubernetes.kubectl("kustomize", str(MANIFESTS))
    return list(yaml.safe_load_all(text.replace("apiVersion: policy/v1\n", "apiVersion: policy/v1beta1\n")))


def pod_specs(objects: list[Object]) -> Iterator[tuple[str, Object]]:
    """Yield the pods' specs by the names of what has them."""
    for each in objects:
        if each["kind"] in ("Deployment", "Job"):
            yield each["metadata"]["name"], each["spec"]["template"]["spec"]


def list_containers(spec: Object) -> list[Object]:
    """Return all containers of a pod's spec."""
    return [*spec.get("initContainers", ()), *spec["containers"]]


def write_overlay(kubernetes: Cluster, folder: Path) -> Path:
    """Write the manifests as they run here, one pod of each kind, and return their folder."""
    programs, shared, overlay = folder / "programs", folder / "shared", folder / "overlay"
    for each in (programs, shared, overlay):
        each.mkdir()
    for name, arguments in PROGRAMS.items():
        (programs / name).write_text(f'#!/bin/sh\nexec /usr/bin/python3 {arguments} "$@"\n')
        (programs / name).chmod(0o755)
    shared.chmod(0o777)
    mounts = {"checkout": (CHECKOUT, CHECKOUT), "packages": (PACKAGES, PACKAGES)}
    mounts["programs"] = (programs, Path("/opt/programs"))
    objects = read_objects(kubernetes)
    for made in objects:
        if made["kind"] == "Deployment":
            made["spec"]["replicas"] = 1
    for _name, spec in pod_specs(objects):
        _run_from_checkout(spec, mounts)
    text = yaml.safe_dump_all([*objects, _volume(shared)])
    (overlay / "objects.yaml").write_text(text)
    (overlay / "kustomization.yaml").write_text("resources: [objects.yaml]\n")
    return overlay


def _run_from_checkout(spec: Object, mounts: dict[str, tuple[Path, Path]]) -> None:
    spec["volumes"] += [
        {"name": name, "hostPath": {"path": str(source)}} for name, (source, _to) in mounts.items()
    ]
    for each in list_containers(spec):
        each |= {"image": images.BASE, "imagePullPolicy": "Never"}
        each["volumeMounts"] += [
            {"name": name, "mountPath": str(to), "readOnly": True} for name, (_source, to) in mounts.items()
        ]
        each["env"] = [
            {"name": "PATH", "value": "/opt/programs:/usr/bin:/bin"},
            {"name": "PYTHONPATH", "value": f"{CHECKOUT}:{PACKAGES}"},
        ]


def _volume(folder: Path) -> Object:
    """Return a volume for the claim: a folder of this machine, which both nodes are."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "job-console-shared"},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "capacity": {"storage": "100Gi"},
            "hostPath": {"path": str(folder)},
            "persistentVolumeReclaimPolicy": "Retain",
        },
    }


@contextmanager
def servers(kubernetes: Cluster, programs: Path) -> Iterator[dict[str, str]]:
    """Give the URLs of a PostgreSQL, whose `programs` are these, and of a Redis, as pods reach them."""
    database = postgres.Server(programs)
    redis = broker.find_server()
    assert redis is not None
    with tempfile.TemporaryDirectory(prefix="redis-") as folder:
        socket = Path(folder, "socket")
        words = ("--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", folder)
        process = subprocess.Popen([str(redis), *words], stdout=subprocess.DEVNULL)
        try:
            database.start()
            wait_for(socket.exists)
            with (
                kubernetes.publish(database.folder / ".s.PGSQL.5432") as for_database,
                kubernetes.publish(socket) as for_redis,
            ):
                yield {
                    "DATABASE_URL": f"postgres://{postgres.OWNER}@{for_database}/{postgres.OWNER}",
                    "REDIS_URL": f"redis://{for_redis}/0",
                }
        finally:
            process.kill()
            process.wait()
            database.kill()  # which the pods are still connected to
            database.remove()
