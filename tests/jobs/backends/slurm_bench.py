"""The Slurm backend on the bench: real jobs on the run's own Slurm."""

from __future__ import annotations

import itertools
import os
import secrets
import shutil
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from jobs.backends.base import Handle, Person, Submission
from jobs.backends.slurm.backend import SlurmBackend
from jobs.backends.slurm.config import SlurmConfig
from jobs.spec import JobSpec, Resources, RoleSpec
from tests.jobs.backends.benches import (
    ENGINE_S,
    SUBMITTED,
    Submitter,
    all_pids,
    as_told,
    role,
    submitter,
    text_of,
)
from tests.slurm import NODES, Slurm
from tests.waiting import wait_for

TOKEN_COMMAND: Final = ("scontrol", "token", "username={user}", "lifespan=600")
"""What prints tokens, as whoever runs the console says."""


def by_rest(slurm: Slurm) -> dict[str, Any]:
    """The settings of a cluster that is asked by its slurmrestd."""
    return {"way": "rest", "url": slurm.rest}


class Releasing(SlurmBackend):
    """The backend with a console that notes every handle at once."""

    def submit(self, submission: Submission) -> Handle:
        """Submit and release."""
        handle = super().submit(submission)
        self.release([handle])
        return handle


@dataclass
class SlurmBench:
    """The Slurm backend with a folder of its own."""

    folder: Path
    slurm: Slurm
    settings: dict[str, Any] = field(default_factory=dict)

    counted = Resources(cpu_milli=1000, memory_mib=64)

    def __post_init__(self) -> None:
        self._numbers = itertools.count()
        self.installation = f"b{secrets.token_hex(3)}"
        self.root = self.folder / "jobs"
        self.root.mkdir()
        self.judge = self.folder / "judge"
        self.judge.mkdir()
        self.told = {
            "folder": str(self.root),
            "configuration": str(self.slurm.configuration),
            "partitions": {"nowhere": "nowhere", "gpus": "gpu"},
            "token_command": TOKEN_COMMAND,
            **self.settings,
        }
        self.config = SlurmConfig.from_settings(self.folder, self.told)
        self.backend = Releasing(self.config)

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
        """To a partition that there is none of."""
        return replace(self.submission(), virtual_cluster="nowhere")

    def too_big_for_now(self) -> Submission:
        return self.submission(role(replicas=len(NODES), resources=Resources(cpu_milli=16_000)))

    def submit_in_another_process(self, submission: Submission, faults: Path | None = None) -> Submitter:
        return submitter({"slurm": self.told, "submission": as_told(submission)}, faults)

    def faults_on_the_way(self) -> list[str]:
        return [
            "slurm.before_lock",
            "slurm.locked",
            "slurm.before_sbatch",
            "slurm.accepted",
            "slurm.noted",
        ]

    def find_saved(self, name: str) -> list[Path]:
        return list(self.root.rglob(name))

    def restart_controller(self) -> None:
        """Once it has written down how its jobs are."""
        self.slurm.wait_until_saved()
        self.slurm.kill("slurmctld")
        self.slurm.start_controller()

    def copy_state(self, to: Path) -> None:
        """What Slurm has written down, copied while it writes nothing and all of it is there."""
        controller = self.slurm.running["slurmctld"]

        def copied() -> bool:
            shutil.rmtree(to, ignore_errors=True)
            controller.send_signal(signal.SIGSTOP)
            try:
                shutil.copytree(self.slurm.base / "state", to)
            except shutil.Error:  # it takes a moment to stop
                return False
            finally:
                controller.send_signal(signal.SIGCONT)
            return (to / "job_state").exists()

        wait_for(copied, 60)

    def processes(self, name: str = "") -> list[int]:
        """What replicas run, and what runs beside them."""
        mark = f"APP_ID={self.installation}-"
        pids = (pid for pid in all_pids() if pid != os.getpid())
        return [pid for pid in pids if mark in text_of(pid, "environ") and name in text_of(pid, "comm")]

    def attempt(self, handle: Handle) -> Path:
        """The attempt's folder."""
        _, job_id, number = handle.split("-")
        return self.root / job_id / number

    def live(self) -> dict[str, str]:
        """The jobs of this bench that Slurm has not ended: number → name."""
        out = self.slurm.call("squeue", "--noheader", "--format=%A %j")
        lines = (line.split(" ", 1) for line in out.splitlines())
        return {number: name for number, name in lines if name.startswith(f"{self.installation}-")}

    def close(self) -> None:
        for number in self.live():
            with suppress(subprocess.CalledProcessError):  # it has ended meanwhile
                self.slurm.call("scancel", "--full", "--signal=KILL", number)
                self.slurm.call("scancel", number)
        wait_for(self.slurm.ready, interval=ENGINE_S)
