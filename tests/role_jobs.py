"""A job with a role, whose program gets credentials by a vendor's own SDK, and what must not be anywhere."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
from django.apps import apps
from django.conf import settings
from django.core import serializers

from jobs import submission
from jobs.access.attempt_tokens import Purpose, make_token
from jobs.access.instance_roles import credentials
from jobs.access.instance_roles.credentials import CACHE
from jobs.access.instance_roles.sts import Credentials
from jobs.dialects.document import Document
from jobs.models import Job, RamRole
from jobs.node import credential_server
from jobs.node.network.service import SOCKET
from jobs.states import FINAL, State
from quotas.models import Admission, Cluster, User, Workspace
from tests.alibaba_sts import SECRET
from tests.factories import attempt_of, make_cluster
from tests.jobs.access.test_job_service import ask
from tests.serving import job_service
from tests.slurm import Slurm
from tests.waiting import wait_for

REPORTS: Final = """
import hashlib, time
last = ""
while True:
    digest = hashlib.sha256(":".join(read()).encode()).hexdigest()
    if digest != last:
        print(last := digest, flush=True)
    time.sleep(0.1)
"""
"""Prints a digest of the credentials that `read` returns whenever they are others."""


def make_slurm_cluster(slurm: Slurm, **config: Any) -> Cluster:
    """A cluster of the run's own Slurm."""
    config = {"configuration": str(slurm.configuration), **config}
    return make_cluster("slurm", backend="slurm", admission=Admission.ENGINE, config=config)


def make_role(workspace: Workspace, **columns: Any) -> RamRole:
    """The default role of a workspace, with an access key.

    Its credentials are valid for so short a time that SDKs ask for them again and again.
    """
    made = RamRole(workspace=workspace, name="trainer", is_default=True, **columns)
    made.encrypt(SECRET)
    made.full_clean()
    made.session_s = 900
    made.save()
    return made


@dataclass
class RoleJob:
    """A job that runs."""

    job: Job

    @property
    def key(self) -> str:
        return attempt_of(self.job).key

    @property
    def folder(self) -> Path:
        return Path(settings.CONSOLE_HOME, "jobs", self.job.public_id, "1")

    def lines(self) -> list[str]:
        logs = self.folder.rglob("logs/*.output")
        return [line for log in logs for line in log.read_text().splitlines()]

    def issued(self) -> Credentials | None:
        """Return the credentials that STS gave last."""
        entry = CACHE._entries.get(self.key)
        return entry.issue.credentials if entry and entry.issue else None

    def read(self, before: Credentials | None = None) -> Credentials:
        """Return the credentials that its program has by now; they are others than those of before."""

        def find() -> Credentials | None:
            found = self.issued()
            return found if found and found != before and self.has_read(found) else None

        return wait_for(find, 30)

    def has_read(self, found: Credentials) -> bool:
        """Tell whether its program had these credentials from the SDK."""
        said = f"{found.access_key_id}:{found.secret}:{found.token}"
        return hashlib.sha256(said.encode()).hexdigest() in self.lines()

    def make_due(self) -> None:
        """Have the credentials renewed when they are asked for the next time."""
        assert self.key in CACHE._entries, self.lines()
        entry = CACHE._entries[self.key]
        assert entry.issue is not None
        entry.issue = replace(entry.issue, renew_at=datetime.now(UTC))


def copy_packages(source: Path, target: Path, *names: str) -> None:
    """Copy Python packages to where a job's user can read them, without the models of services."""
    target.mkdir()
    target.chmod(0o755)
    for name in names:
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name, ignore=_skip)
        else:
            shutil.copy(source / name, target)


def _skip(folder: str, names: list[str]) -> list[str]:
    is_models = Path(folder).name == "data"
    return [name for name in names if name == "__pycache__" or (is_models and not name.endswith(".json"))]


@contextmanager
def run(person: User, packages: Path, program: str) -> Iterator[RoleJob]:
    """Submit a job that asks for the default role, in a console that answers jobs; stop it in the end.

    `packages` is a folder with Python packages that its user can read (`copy_packages`).
    """
    command = f"export PYTHONPATH={packages}; exec python3 -c {shlex.quote(program + REPORTS)}"
    role = {"Type": "Worker", "PodCount": 1, "ResourceConfig": {"CPU": "1", "Memory": "512Mi"}}
    text = json.dumps(
        {
            "DisplayName": "roles",
            "JobType": "PyTorchJob",
            "JobSpecs": [role],
            "UserCommand": command,
            "CredentialConfig": {"EnableCredentialInject": True},
        }
    )
    with job_service(settings.CONSOLE_HOME / SOCKET):
        job = submission.submit(person, Document(text)).job
        try:
            yield RoleJob(job)
        finally:
            submission.stop(person, job)
            wait_for(lambda: State(Job.objects.get(pk=job.pk).state) in FINAL, 30)


def find_leaks(running: RoleJob, values: list[str]) -> list[str]:
    """Return where any of the values is: files of the console, processes, rows of the database."""
    wanted = [value.encode() for value in values]
    found = []
    for path in (*Path(settings.CONSOLE_HOME).rglob("*"), *Path("/proc").glob("[0-9]*/environ")):
        found += [str(path) for value in wanted if value in _read(path)]
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        found += [str(path) for value in wanted if value in _read(path)]
    for model in apps.get_models():
        rows = serializers.serialize("json", model._default_manager.all()).encode()
        found += [model.__name__ for value in wanted if value in rows]
    assert running.folder.exists()
    return found


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes() if stat.S_ISREG(path.lstat().st_mode) else b""
    except OSError:
        return b""


def check_beside(running: RoleJob, *, is_token_sent: bool, has_file: bool = True) -> None:
    """The same where a server beside the replica gives them: in one file of the job's, and nowhere else.

    On this machine the server asks the console, without a file.  Without a header the token is in the
    address, and so in the environment of the job's processes alone.
    """
    first = running.read()
    running.make_due()
    kept = [*running.folder.rglob(credential_server.FILE)]
    assert len(kept) == has_file
    for path in kept:
        assert path.stat().st_mode & 0o777 == 0o600
        os.utime(path, (0, 0))  # old enough to be renewed
    second = running.read(before=first)
    secret = [value for each in (first, second) for value in (each.secret, each.token)]
    assert {Path(each).name for each in find_leaks(running, secret)} == {path.name for path in kept}
    (token_file,) = running.folder.rglob(".job-console-role-token")
    token = token_file.read_text()
    places = {Path(each).name for each in find_leaks(running, [token])} - {"secrets.json"}
    assert places == ({token_file.name} if is_token_sent else {token_file.name, "environ"})
    (port,) = {line.split()[1] for line in running.lines() if line.startswith("port ")}
    own = f"setpriv --reuid={token_file.stat().st_uid} --clear-groups".split() if os.geteuid() == 0 else []
    for given, status in ((token, 200 if is_token_sent else 401), ("x", 401)):
        request = Request(f"http://127.0.0.1:{port}/v1/credentials/aws", headers={"Authorization": given})
        assert _status(request, own) == status
        if own:  # another user of the node is refused, whatever it shows
            assert _status(request, ["setpriv", "--reuid=nobody", "--clear-groups"]) == 0
    job = running.job
    submission.stop(job.owner, job)
    wait_for(lambda: attempt_of(job).ended_at is not None, 60)
    assert not [path for path in kept if path.exists()]
    with pytest.raises(URLError):
        urlopen(f"http://127.0.0.1:{port}/")


def _status(request: Request, user: list[str]) -> int:
    """Return the status of the answer to a process of the user that a command changes to."""
    program = f"""
import urllib.error, urllib.request
request = urllib.request.Request({request.full_url!r}, headers={dict(request.header_items())!r})
try:
    print(urllib.request.urlopen(request).status)
except urllib.error.HTTPError as error:
    print(error.code)
except OSError:
    print(0)  # closed
"""
    done = subprocess.run([*user, "/usr/bin/python3", "-c", program], capture_output=True, check=True)
    return int(done.stdout)


def check(running: RoleJob, path: str) -> None:
    """The program has the credentials that STS gave; they are renewed, secret, and gone after the end."""
    given = [running.read()]
    running.make_due()
    given.append(running.read(before=given[0]))
    secret = [value for each in given for value in (each.secret, each.token)]
    assert find_leaks(running, secret) == []
    token = make_token(running.key, Purpose.ROLE_CREDENTIALS)
    files = {Path(each).name for each in find_leaks(running, [token])}
    assert files == {"secrets.json", ".job-console-role-token"}
    identity = {"attempt": running.key, "replica": "0"}
    assert ask(identity, path, authorization=token)[0] == 200
    job = running.job
    submission.stop(job.owner, job)
    wait_for(lambda: attempt_of(job).ended_at is not None, 30)
    assert ask(identity, path, authorization=token) == (403, {"error": "Forbidden"})
    assert not (running.folder / "secrets.json").exists()
    assert credentials.role_of(job) is not None, "the end of the attempt is the reason"
