"""A job that really runs, people in its workspace, and the process by which they get inside."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import uvloop
from django.conf import LazySettings
from django.conf import settings as django_settings

from jobs import clusters
from jobs.access import sessions, sshkeys
from jobs.access.sessions import login_name
from jobs.access.terminal_gateway.server import run
from jobs.backends.base import Backend, Handle, HeldSubmission, Observation, Person, Submission
from jobs.backends.local import launch
from jobs.models import Job, Replica
from jobs.node.wrapper import log_writer
from jobs.spec import Resources, RoleSpec
from jobs.states import TERMINAL, State
from quotas.models import Role, User
from tests import required
from tests.factories import (
    attempt_of,
    make_cluster,
    make_job,
    make_quota,
    make_spec,
    make_user,
    make_workspace,
    replica_of,
)
from tests.ports import free_port
from tests.slurm import Slurm
from tests.waiting import wait_for

SMALL = Resources(cpu_milli=1000, memory_mib=512)


@dataclass
class Place:
    """A job with real processes; `replica` is its first one."""

    job: Job
    backend: Backend
    handle: Handle
    folder: Path
    """The attempt's, on this machine."""

    @property
    def replica(self) -> Replica:
        return replica_of(self.job, "Main_Role")

    @property
    def work(self) -> Path:
        """The replica's folder, as this machine knows it."""
        (folder,) = (*self.folder.glob("work/*-0"), *self.folder.glob("run-1/work/*-0"))
        return folder

    @property
    def home(self) -> str:
        """What the replica itself calls it."""
        return "/job" if self.job.cluster.backend == "local" else str(self.work)

    def login(self) -> str:
        return login_name(self.job, self.replica)

    def log(self) -> str:
        found = self.backend.observe([self.handle])[self.handle]
        assert isinstance(found, Observation)
        log = Path(found.replicas[0].log_path)
        return log.read_text() if log.exists() else ""

    def end(self) -> None:
        """Really; the rows do not know yet."""
        self.backend.stop(self.handle, grace_s=0, signal="KILL")
        wait_for(self._is_over, 60)
        for log in self.folder.glob("logs/*.output"):
            log_writer.unmark_append_only(log)

    def _is_over(self) -> bool:
        found = self.backend.observe([self.handle])[self.handle]
        return not isinstance(found, Observation) or found.state in TERMINAL


@dataclass
class People:
    """Owner, member and admin of the job's workspace, and somebody from another."""

    owner: User
    member: User
    operator: User
    stranger: User


@pytest.fixture
def people(transactional_db: None) -> People:
    return People(*(make_user(name) for name in ("owner", "member", "operator", "stranger")))


EVERYWHERE = pytest.mark.parametrize("begin_job", ["local", "slurm"], indirect=True)
"""For a test that holds whatever the job's engine is; others run on this machine's own."""


@pytest.fixture
def begin_job(request: pytest.FixtureRequest, people: People) -> Iterator[Callable[..., Place]]:
    """Start a job of the owner's whose one replica runs `command`."""
    members = {people.owner: Role.DEVELOPER, people.member: Role.DEVELOPER, people.operator: Role.ADMIN}
    engine = getattr(request, "param", "local")
    cluster = make_cluster(config={"network": engine} if engine in {"own", "host"} else {})
    if engine == "slurm":
        running: Slurm = request.getfixturevalue("slurm")
        cluster = make_cluster(backend="slurm", config={"configuration": str(running.configuration)})
        (django_settings.CONSOLE_HOME / "jobs").mkdir(mode=0o700, exist_ok=True)
    quota = make_quota(make_workspace(members=members), cluster)
    make_workspace(members={people.stranger: Role.ADMIN})
    begun: list[Place] = []

    def begin(command: str = "echo up; exec sleep 600") -> Place:
        role = RoleSpec(name="Main_Role", command=command, resources=SMALL)
        spec = make_spec(roles=(role,))
        job = make_job(State.RUNNING, owner=people.owner, quota=quota, spec=spec)
        attempt, backend = attempt_of(job), clusters.backend_for(job.cluster)
        person = Person(people.owner.username, people.owner.pk)
        submission = Submission(key=attempt.key, job_id=job.public_id, attempt=1, spec=spec, person=person)
        handle = attempt.handle = backend.submit(submission)
        attempt.save()
        if isinstance(backend, HeldSubmission):
            backend.release([handle])
        folder = django_settings.CONSOLE_HOME / "jobs" / job.public_id / "1"
        begun.append(Place(job, backend, handle, folder))
        wait_for(begun[-1].log, 60)
        return begun[-1]

    yield begin
    for place in begun:
        place.end()
        wait_for(partial(_is_removed, place.folder))
    launch.hand_over(django_settings.CONSOLE_HOME / "jobs")


def _is_removed(folder: Path) -> bool:
    """What looks after the job may still write its last words there."""
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


@pytest.fixture
def place(begin_job: Callable[..., Place]) -> Place:
    return begin_job()


@contextmanager
def shells() -> Iterator[None]:
    """The process, in a thread of this one; it serves terminals and folders once this has begun."""
    (django_settings.CONSOLE_HOME / "run").mkdir(exist_ok=True)
    loop = uvloop.new_event_loop()
    told = asyncio.Event()
    trouble: list[BaseException] = []

    def serve() -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(run(told))
        except BaseException as error:  # noqa: BLE001
            trouble.append(error)
        loop.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        # The last of its sockets; one that another test has left there refuses.
        wait_for(lambda: trouble or _is_served(django_settings.CONSOLE_HOME / sessions.FOLDERS_SOCKET))
        yield
    finally:
        loop.call_soon_threadsafe(told.set)
        thread.join(60)
    assert not thread.is_alive()
    assert not trouble


def _is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(str(path)) == 0


@dataclass
class Client:
    """Somebody's OpenSSH: a folder with their key, and how to reach the gateway."""

    folder: Path
    port: int
    options: list[str] = field(default_factory=list)

    @property
    def key(self) -> Path:
        return self.folder / "key"

    def command(self, program: str, *arguments: str) -> list[str]:
        port = "-P" if program in {"scp", "sftp"} else "-p"
        settled = [
            *("-F", "none", "-i", str(self.key), port, str(self.port)),
            *("-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR"),
            *("-o", f"UserKnownHostsFile={self.folder}/known_hosts", "-o", "BatchMode=yes"),
        ]
        return [program, *self.options, *settled, *arguments]

    def run(self, program: str, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
        defaults = {"capture_output": True, "text": True, "timeout": 30}
        if "input" not in more:
            defaults["stdin"] = subprocess.DEVNULL
        return subprocess.run(self.command(program, *arguments), check=False, **{**defaults, **more})

    def ssh(self, place: Place, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
        return self.run("ssh", f"{place.login()}@127.0.0.1", *words, **more)


@pytest.fixture
def gateway(settings: LazySettings, people: People) -> Iterator[int]:
    """The port on which the SSH gateway listens."""
    required.skip_without("ssh", "openssh-client")
    settings.CONSOLE_SSH_PORT = free_port()
    settings.CONSOLE_BIND = "127.0.0.1"
    settings.CONSOLE_GATEWAY_RECHECK_SECONDS = 0.3
    with shells():
        wait_for(lambda: _answers(settings.CONSOLE_SSH_PORT))
        yield settings.CONSOLE_SSH_PORT


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@pytest.fixture
def client_of(gateway: int, tmp_path: Path) -> Callable[[User], Client]:
    """An OpenSSH with a new key that this person has added."""

    def make(user: User) -> Client:
        folder = tmp_path / user.username
        folder.mkdir()
        make_key(folder / "key")
        sshkeys.add(user, (folder / "key.pub").read_text())
        return Client(folder, gateway)

    return make


def make_key(path: Path, *kind: str) -> None:
    required.skip_without("ssh-keygen", "openssh-client")
    command = ["ssh-keygen", "-q", "-N", "", "-C", "somebody@somewhere", "-f", str(path)]
    subprocess.run([*command, *(kind or ("-t", "ed25519"))], check=True)


@pytest.fixture
def owner(client_of: Callable[[User], Client], people: People) -> Client:
    return client_of(people.owner)
