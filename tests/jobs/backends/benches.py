"""A backend on the bench: how the contract suite makes submissions for it and gets in its way.

Each backend has a bench; the contract is written against `Bench` alone.
"""

from __future__ import annotations

import atexit
import itertools
import multiprocessing
import os
import secrets
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any, Protocol

from jobs import faults as faults_module
from jobs.backends.base import Backend, Handle, Observation, Person, ReplicaRef, ReplicaSeen, Submission
from jobs.backends.local.backend import LocalBackend
from jobs.backends.local.config import LocalConfig
from jobs.facilities import StorageMapping
from jobs.node.network import attempt_network
from jobs.node.wrapper import log_writer
from jobs.spec import JobSpec, Resources, RoleSpec
from jobs.states import TERMINAL
from tests.waiting import wait_for

CHECKOUT = Path(__file__).parents[3]
SUBMITTED = ("person", "secrets", "endpoint_token", "workspace", "uploads", "storage", "options", "egress")
SMALL = Resources(cpu_milli=100, memory_mib=64)
AGENT = "jc-agent"
ENGINE_S = 0.1
"""Seconds between two questions to an engine: each starts a program, beside which its jobs run."""

CONTRACT_BENCHES: Mapping[str, tuple[str, ...]] = {
    "kubernetes": ("kubernetes",),
    "local": ("local", "local-none"),
    "ray": ("ray",),
    "slurm": ("slurm", "slurm-rest"),
}
"""Backend → the benches on which it runs the contract; Kubernetes has its own in its folder of tests."""

MARKS = ("JOB_CONSOLE_REPLICA", attempt_network.MARK)
"""Variables that name the attempt of a process."""


class Bench(Protocol):
    """One backend, and the means to disturb it."""

    @property
    def backend(self) -> Backend:
        """What is tested."""

    @property
    def judge(self) -> Path:
        """A folder that every job sees under this name."""

    @property
    def counted(self) -> Resources:
        """What its engine counts for a replica that asks for SMALL."""

    def submission(self, *roles: RoleSpec, **spec: Any) -> Submission:
        """A new one, never submitted before."""

    def unacceptable(self) -> Submission:
        """One that the engine will always refuse."""

    def too_big_for_now(self) -> Submission:
        """One that does not fit beside what runs already."""

    def submit_in_another_process(self, submission: Submission, faults: Path | None = None) -> Submitter:
        """Have another worker submit it."""

    def faults_on_the_way(self) -> list[str]:
        """The points at which a submitter may be frozen, in order."""

    def find_saved(self, name: str) -> list[Path]:
        """The checkpoints of this name that its jobs have saved."""

    def restart_controller(self) -> None:
        """Kill whatever the engine needs to know its jobs, with SIGKILL, as a crash would."""

    def processes(self, name: str = "") -> list[int]:
        """What runs of its jobs, and beside them; by the kernel's name for it if given."""

    def close(self) -> None:
        """End everything; AssertionError when something is left."""


@dataclass
class Submitter:
    """Another worker; `answer` waits for the handle it got."""

    process: ForkProcess
    handle: Connection

    def answer(self, timeout: float = 120) -> Handle:
        """Its handle, once it goes on; it may have been told to before it had stopped."""
        until = time.monotonic() + timeout
        while not self.handle.poll(1):
            assert time.monotonic() < until, "the submitter says nothing"
            self.thaw()
        try:
            return Handle(self.handle.recv())
        except EOFError:
            raise AssertionError(f"the submitter ended with {self.end()}") from None

    def thaw(self) -> None:
        if self.process.is_alive() and self.process.pid:
            os.kill(self.process.pid, signal.SIGCONT)

    def end(self) -> int | None:
        """Let it end, however it does."""
        self.thaw()
        self.process.join(60)
        assert not self.process.is_alive()
        return self.process.exitcode


def submitter(told: dict[str, Any], faults: Path | None) -> Submitter:
    """Start another worker that submits what it is told.

    It is a copy of this process: one that begins anew imports for longer than it submits.
    """
    from tests.jobs.backends import submitter as other  # noqa: PLC0415 it imports this module

    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_submit, args=(other.submit, told, faults, theirs))
    process.start()
    atexit.register(process.kill)  # else this process waits at its end for one that a failed test left frozen
    theirs.close()
    return Submitter(process, ours)


def _submit(
    submit: Callable[[dict[str, Any]], Handle], told: dict[str, Any], faults: Path | None, answer: Connection
) -> None:
    """Submit in another worker, which `faults` are for."""
    if faults:
        os.environ["CONSOLE_FAULTS"] = faults_module.FOLDER = str(faults)  # type: ignore[misc]
    answer.send(submit(told))


def as_told(submission: Submission) -> dict[str, Any]:
    """A submission as another worker is told of it."""
    return {
        "key": submission.key,
        "job_id": submission.job_id,
        "attempt": submission.attempt,
        "spec": submission.spec.model_dump_json(),
        "person": asdict(submission.person),
    }


def role(command: str = "true", name: str = "worker", replicas: int = 1, **more: Any) -> RoleSpec:
    """A small role."""
    return RoleSpec(**{"name": name, "replicas": replicas, "command": command, "resources": SMALL, **more})


def wait_until_over(backend: Backend, handle: Handle, timeout: float = 60) -> Observation:
    """The attempt's last observation."""

    def over() -> Observation | None:
        seen = backend.observe([handle])[handle]
        assert isinstance(seen, Observation), "gone"
        return seen if seen.state in TERMINAL else None

    seen = wait_for(over, timeout, interval=ENGINE_S if backend.has_scheduler else 0.02)
    assert seen is not None
    return seen


def log_of(backend: Backend, handle: Handle, name: str = "worker", index: int = 0) -> str:
    """Everything the replica has written so far."""
    return backend.read_log(handle, ReplicaRef(name, index), "", 64 << 20).data.decode()


def replica(seen: Observation, name: str = "worker", index: int = 0) -> ReplicaSeen:
    """One replica of an observation."""
    return next(one for one in seen.replicas if (one.role, one.index) == (name, index))


@dataclass
class LocalBench:
    """The local backend in folders of its own.  `judge` is a folder outside that every job may write to."""

    folder: Path
    settings: dict[str, Any] = field(default_factory=dict)
    storage: dict[str, StorageMapping] = field(default_factory=dict)

    counted = SMALL

    def __post_init__(self) -> None:
        self._numbers = itertools.count()
        self.submitters: list[Submitter] = []
        self.installation = f"b{secrets.token_hex(3)}"
        self.home = self.folder / "home"
        self.judge = self.folder / "judge"
        self.home.mkdir(mode=0o700)
        self.judge.mkdir()
        self.judge.chmod(0o777)
        base = LocalConfig(root=self.home / "jobs", hide=self.home, bell=self.home / "bell", cpu_milli=64_000)
        self.config = replace(base, show=(self.judge,), **self.settings)
        self.backend = LocalBackend(self.config)

    def submission(self, *roles: RoleSpec, **spec: Any) -> Submission:
        more = {name: spec.pop(name) for name in SUBMITTED if name in spec}
        job_id = f"job{next(self._numbers)}"
        return Submission(
            key=f"{self.installation}-{job_id}-1",
            job_id=job_id,
            attempt=1,
            spec=JobSpec(**{"name": "bench", "roles": roles or (role(),), **spec}),
            **{"person": Person("alice", 7), "storage": self.storage, **more},
        )

    def unacceptable(self) -> Submission:
        return self.submission(role(resources=Resources(cpu_milli=10**9)))

    def too_big_for_now(self) -> Submission:
        return self.submission(role(resources=Resources(cpu_milli=self.config.total().cpu_milli)))

    def submit_in_another_process(self, submission: Submission, faults: Path | None = None) -> Submitter:
        told = {
            "root": str(self.config.root),
            "hide": str(self.config.hide),
            "submission": as_told(submission),
            "config": {
                "cpu_milli": self.config.cpu_milli,
                "show": [str(self.judge)],
                "folders": ["/" + "/".join(named.parts) for named in self.config.folders],
                "isolation": self.config.isolation,
                "python": self.config.python,
            },
        }
        self.submitters.append(submitter(told, faults))
        return self.submitters[-1]

    def faults_on_the_way(self) -> list[str]:
        return ["local.before_lock", "local.locked", "local.claimed", "local.accepted", "local.launched"]

    def find_saved(self, name: str) -> list[Path]:
        return list(self.home.rglob(name))

    def restart_controller(self) -> None:
        for pid in self.agents():
            os.kill(pid, signal.SIGKILL)

    def agents(self) -> list[int]:
        """The agent of this bench; more while one takes over."""
        return [pid for pid, name in named_pids() if name == AGENT and self._is_ours(pid)]

    def routers(self) -> list[int]:
        """What keeps the networks of this bench's jobs."""
        return [pid for pid in self.processes() if self._is_router(pid)]

    def processes(self, name: str = "") -> list[int]:
        """Routers, wrappers and replicas of this bench; of a kernel's name if given, then no routers."""
        named = (pid for pid, own in named_pids() if name in own and own != AGENT and pid != os.getpid())
        return [pid for pid in named if self._is_ours(pid) and not (name and self._is_router(pid))]

    def attempt(self, handle: Handle) -> Path:
        """The attempt's folder."""
        _, job_id, number = handle.split("-")
        return self.config.root / job_id / number

    def handles(self) -> list[Handle]:
        """Every attempt there is."""
        plans = self.config.root.glob("*/*/plan.json")
        return [Handle(f"{self.installation}-{plan.parent.parent.name}-{plan.parent.name}") for plan in plans]

    def close(self) -> None:
        for handle in self.handles():
            self.backend.stop(handle, grace_s=0, signal="KILL")
        for handle in self.handles():
            wait_until_over(self.backend, handle)
        wait_for(lambda: not self.processes())
        self.restart_controller()
        for log in self.config.root.glob("*/*/logs/*.output"):
            log_writer.unmark_append_only(log)

    def _is_ours(self, pid: int) -> bool:
        if str(self.config.root) in text_of(pid, "cmdline"):
            return True
        environ = text_of(pid, "environ")
        return any(f"{name}={self.installation}-" in environ for name in MARKS)

    def _is_router(self, pid: int) -> bool:
        return f"{attempt_network.MARK}={self.installation}-" in text_of(pid, "environ")


def named_pids() -> Iterator[tuple[int, str]]:
    """Every process of this machine, with the kernel's name for it."""
    return ((pid, text_of(pid, "comm").rstrip("\n")) for pid in all_pids())


def all_pids() -> Iterator[int]:
    """Every process of this machine."""
    return (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())


def text_of(pid: int, name: str) -> str:
    """What /proc says of a process; nothing once it is gone."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace")
    except OSError:
        return ""
