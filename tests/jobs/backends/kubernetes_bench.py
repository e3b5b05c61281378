"""The Kubernetes backend on the bench: real pods on the run's own cluster."""

from __future__ import annotations

import itertools
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobs.backends.base import Handle, Person, Submission
from jobs.backends.kubernetes.backend import KubernetesBackend
from jobs.backends.kubernetes.config import KubernetesConfig
from jobs.backends.kubernetes.handles import INSTALLATION_LABEL
from jobs.spec import JobSpec, Mount, Resources, RoleSpec
from tests.jobs.backends.benches import (
    ENGINE_S,
    SMALL,
    SUBMITTED,
    Submitter,
    all_pids,
    as_told,
    role,
    submitter,
    text_of,
)
from tests.kubernetes.cluster import Cluster
from tests.waiting import wait_for

IMAGE = "localhost/base:12"


STORAGE_CLASS = "node-folder"
"""Of volumes that Kubernetes' own test provisioner makes: folders of this machine, for root alone."""


class Releasing(KubernetesBackend):
    """The backend with a console that notes every handle at once."""

    def submit(self, submission: Submission) -> Handle:
        """Submit and release; a volume for checkpoints is opened to the job's user before."""
        handle = super().submit(submission)
        if self._config.checkpoint_class:
            wait_for(lambda: any(map(_open, Path("/tmp/hostpath_pv").glob("*"))))
        self.release([handle])
        return handle


def _open(folder: Path) -> bool:
    folder.chmod(0o777)
    return True


@dataclass
class KubernetesBench:
    """The Kubernetes backend with a namespace and a folder of its own."""

    folder: Path
    cluster: Cluster
    namespace: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    counted = SMALL

    def __post_init__(self) -> None:
        self._numbers = itertools.count()
        self.installation = f"b{secrets.token_hex(3)}"
        self.judge = self.folder / "judge"
        self.judge.mkdir()
        self.judge.chmod(0o777)
        self.told = {
            "url": self.cluster.server,
            "ca": self.cluster.ca,
            "token": self.cluster.token,
            "namespace": self.namespace,
            "image": IMAGE,
            "folders": {str(self.judge): {"workspaces": ["*"], "write": True}},
            **self.settings,
        }
        self.home = self.folder / "home"
        self.config = KubernetesConfig.from_settings(self.home, self.told)
        self.backend = Releasing(self.config)
        self.api = self.cluster.api
        wait_for(self.is_ready, 60, interval=ENGINE_S)

    def submission(self, *roles: RoleSpec, **spec: Any) -> Submission:
        """A new one, whose replicas find the judge's folder where it is."""
        more = {name: spec.pop(name) for name in SUBMITTED if name in spec}
        job_id = f"job{next(self._numbers)}"
        judge = Mount(uri=str(self.judge), path=str(self.judge))
        mounts = (*spec.pop("mounts", ()), judge)
        return Submission(
            key=f"{self.installation}-{job_id}-1",
            job_id=job_id,
            attempt=1,
            spec=JobSpec(**{"name": "bench", "roles": roles or (role(),), "mounts": mounts, **spec}),
            **{"person": Person("alice", 7), "workspace": "lab", **more},
        )

    def unacceptable(self) -> Submission:
        """With a folder of the node that no admin has named."""
        return self.submission(mounts=(Mount(uri="/etc", path="/mnt/etc"),))

    def too_big_for_now(self) -> Submission:
        """All of both nodes."""
        return self.submission(role(replicas=2, resources=Resources(cpu_milli=2000)))

    def submit_in_another_process(self, submission: Submission, faults: Path | None = None) -> Submitter:
        told = {"kubernetes": self.told, "home": str(self.home), "submission": as_told(submission)}
        return submitter(told, faults)

    def faults_on_the_way(self) -> list[str]:
        return [f"kubernetes.{point}" for point in ("recorded", "claimed", "prepared", "submitted")] + [
            f"kubernetes.{point}" for point in ("released", "creating", "created")
        ]

    def find_saved(self, name: str) -> list[Path]:
        return list(Path("/tmp/hostpath_pv").rglob(name))

    def restart_controller(self) -> None:
        """Kill the API server, the controllers and both kubelets."""
        self.cluster.restart_control_plane()
        for number in (1, 2):
            self.cluster.kill_kubelet(number)

    def processes(self, name: str = "") -> list[int]:
        """What replicas run."""
        mark = f"APP_ID={self.installation}-"
        pids = (pid for pid in all_pids() if pid != os.getpid())
        return [pid for pid in pids if mark in text_of(pid, "environ") and name in text_of(pid, "comm")]

    def pods(self) -> list[dict[str, Any]]:
        """The pods of this bench's jobs."""
        labels = f"{INSTALLATION_LABEL}={self.installation}"
        return list(self.api.list(f"/api/v1/namespaces/{self.namespace}/pods", labels=labels).items)

    def close(self) -> None:
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        for pod in self.pods():
            self.api.delete(f"{path}/{pod['metadata']['name']}", grace_s=0)
        wait_for(lambda: not self.pods() and not self.processes(), 60, interval=ENGINE_S)
        wait_for(self.is_ready, 60, interval=ENGINE_S)

    def is_ready(self) -> bool:
        """Whether pods can be placed on all nodes, which have no GPUs until the device plugin is there."""
        return all(node.schedulable and node.gpus for node in self.backend.inventory().nodes)
