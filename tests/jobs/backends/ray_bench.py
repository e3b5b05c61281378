"""The Ray backend on the bench: real jobs on the run's own Ray."""

from __future__ import annotations

import itertools
import os
import secrets
import shutil
import signal
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from jobs.backends.base import Handle, Person, Submission, Unreachable
from jobs.backends.ray.backend import RayBackend
from jobs.backends.ray.client import RayClient
from jobs.backends.ray.config import RayConfig
from jobs.node import marks
from jobs.spec import JobSpec, Resources, RoleSpec
from tests.jobs.backends.benches import (
    SMALL,
    SUBMITTED,
    Submitter,
    all_pids,
    as_told,
    role,
    submitter,
    text_of,
    wait_until_over,
)
from tests.ray_cluster import CPUS, NODES, RayCluster
from tests.waiting import wait_for

PASS_S: Final = 0.3
"""Seconds between two passes of the worker."""

NODES_FOLDER: Final = "/var/tmp"


@dataclass
class RayBench:
    """The Ray backend with folders of its own; `url` is where its jobs find the console."""

    folder: Path
    cluster: RayCluster
    url: str
    settings: dict[str, Any] = field(default_factory=dict)

    counted = SMALL

    def __post_init__(self) -> None:
        self._numbers = itertools.count()
        self.installation = f"b{secrets.token_hex(3)}"
        self.root = self.folder / "jobs"
        self.root.mkdir()
        self.judge = self.folder / "judge"
        self.judge.mkdir()
        self.shared = self.folder / "shared"
        self.shared.mkdir()
        self.nodes_folder = Path(tempfile.mkdtemp(prefix="job-console-test-", dir=NODES_FOLDER))
        self.told = {
            "url": self.cluster.url,
            "token": self.cluster.token,
            "console_url": self.url,
            "nodes_folder": str(self.nodes_folder),
            "checkpoints": str(self.shared),
            "gpu_resources": ["titan"],
            **self.settings,
        }
        self.config = RayConfig.from_settings(self.folder, self.told)
        self.backend = RayBackend(self.config)
        self._is_over = threading.Event()
        self._worker = threading.Thread(target=self._observe_all)
        self._worker.start()

    def _observe_all(self) -> None:
        """Observe all attempts now and then, as a worker of the console does, which so admits relays."""
        while not self._is_over.wait(PASS_S):
            with suppress(Unreachable, FileNotFoundError):
                self.backend.observe(self.handles())

    def submission(self, *roles: RoleSpec, **spec: Any) -> Submission:
        more = {name: spec.pop(name) for name in SUBMITTED if name in spec}
        job_id = f"job{next(self._numbers)}"
        return Submission(
            key=f"{self.installation}-{job_id}-1",
            job_id=job_id,
            attempt=1,
            spec=JobSpec(**{"name": "bench", "roles": roles or (role(),), **spec}),
            **{"person": Person("alice", 7), **more},
        )

    def unacceptable(self) -> Submission:
        """With an image, which this cluster can't run."""
        return self.submission(role(image="python:3.11"))

    def too_big_for_now(self) -> Submission:
        whole = Resources(cpu_milli=CPUS * 1000, memory_mib=64)
        return self.submission(role(replicas=len(NODES), resources=whole))

    def submit_in_another_process(self, submission: Submission, faults: Path | None = None) -> Submitter:
        return submitter(
            {"ray": self.told, "home": str(self.folder), "submission": as_told(submission)}, faults
        )

    def faults_on_the_way(self) -> list[str]:
        return ["ray.before_lock", "ray.locked", "ray.before_post", "ray.accepted", "ray.noted"]

    def find_saved(self, name: str) -> list[Path]:
        return list(self.shared.rglob(name))

    def restart_controller(self) -> None:
        """The process by which Ray is asked."""
        self.cluster.kill_dashboard()
        self.cluster.start_dashboard()

    def processes(self, name: str = "") -> list[int]:
        """What runs of its jobs, and beside them."""
        marked = (f"{marks.REPLICA}={self.installation}-", f"{marks.RUNNER}={self.nodes_folder}/")
        pids = (pid for pid in all_pids() if pid != os.getpid() and name in text_of(pid, "comm"))
        return [pid for pid in pids if any(mark in text_of(pid, "environ") for mark in marked)]

    def attempt(self, handle: Handle) -> Path:
        """The attempt's folder."""
        _, job_id, number = handle.split("-")
        return self.root / job_id / number

    def handles(self) -> list[Handle]:
        """Every attempt that Ray was given."""
        return [
            Handle(f"{self.installation}-{sent.parent.parent.name}-{sent.parent.name}")
            for sent in self.root.glob("*/*/sent")
        ]

    def _is_forgotten(self) -> bool:
        """Whether Ray runs nothing of this bench any more."""
        with suppress(Unreachable):
            jobs = RayClient(self.config).list_jobs()
            return not any(
                job.is_active and job.submission_id.startswith(f"{self.installation}-") for job in jobs
            )
        return False

    def close(self) -> None:
        for handle in self.handles():
            self.backend.stop(handle, grace_s=0, signal="KILL")
        for handle in self.handles():
            with suppress(AssertionError):
                wait_until_over(self.backend, handle)
        with suppress(AssertionError):
            wait_for(lambda: not self.processes(), 10)
        with suppress(AssertionError):
            wait_for(self._is_forgotten, 20, interval=0.2)
        self._is_over.set()
        self._worker.join()
        left = self.processes()
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.nodes_folder, ignore_errors=True)
        assert not left
