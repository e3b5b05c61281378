"""A console whose Slurm cluster tells people apart: what one may do with another's job, which is nothing."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client

from jobs import submission
from jobs.backends.slurm.identity import as_user
from jobs.dialects.document import Document
from jobs.logs import log_store
from jobs.models import Attempt, Job, LogStream
from jobs.scheduling import reconcile
from jobs.states import TERMINAL, State
from quotas.access import Verb, can
from quotas.models import Admission, Cluster, Role, User
from tests import unix_users
from tests.factories import make_membership, make_quota, make_user, make_workspace
from tests.jobs.backends.slurm_bench import TOKEN_COMMAND, by_rest
from tests.slurm import Slurm
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(bool(unix_users.missing()), reason=unix_users.missing() or "there are some"),
]


def with_a_helper(slurm: Slurm, folder: Path) -> dict[str, Any]:
    """As an admin installs it."""
    helper = folder / "helper"
    shutil.copy(as_user.__file__, helper)
    helper.chmod(0o755)
    told = {"folder": str(folder / "jobs"), "configuration": str(slurm.configuration)}
    console = {"console": pwd.getpwuid(os.geteuid()).pw_name}
    Path(f"{helper}.json").write_text(json.dumps({**told, **console}))
    return {"identity": "sudo", "helper": str(helper)}


@pytest.fixture(params=["sudo", "login", "jwt"])
def cluster(request: pytest.FixtureRequest, slurm: Slurm, settings: LazySettings) -> Iterator[Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="job-console-test-", dir="/var/tmp"))
    folder.chmod(0o711)
    (folder / "jobs").mkdir(mode=0o711)
    settings.CONSOLE_SLURM_FOLDER = str(folder / "jobs")
    config = {"configuration": str(slurm.configuration), "allow_plain": True, "timeout_s": 60}
    if request.param in ("sudo", "login"):
        config |= with_a_helper(slurm, folder)
        if request.param == "login":
            config["login"] = request.getfixturevalue("sshd").login(pwd.getpwuid(os.geteuid()).pw_name)
    else:
        settings.CONSOLE_SLURM_TOKEN_COMMAND = TOKEN_COMMAND
        config |= {**by_rest(slurm), "identity": "jwt"}
    made = Cluster.objects.create(
        slug="hpc", name="HPC", backend="slurm", config=config, admission=Admission.ENGINE
    )
    reconcile.take_inventory(made.pk)
    made.refresh_from_db()
    assert made.trouble == ""
    yield made
    shutil.rmtree(folder, ignore_errors=True)


def submitted(user: User, command: str) -> Job:
    role = {"name": "worker", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 64, "command": command}
    return submission.submit(
        user, Document(json.dumps({"jobName": "j", "image": "i", "taskRoles": [role]}))
    ).job


def test_slurm_job_belongs_to_owner_and_is_closed_to_others(cluster: Cluster) -> None:
    with unix_users.made(2) as (a, b):
        alice = make_user("alice", unix_name=a.pw_name)
        bob = make_user("bob", unix_name=b.pw_name)
        workspace = make_workspace()
        for user in (alice, bob):
            make_membership(user, workspace, Role.DEVELOPER)
        make_quota(cluster=cluster, workspace=workspace)
        theirs = {alice: submitted(alice, "id -u"), bob: submitted(bob, "id -u")}
        reconcile.drain(cluster.pk)

        def over() -> bool:
            reconcile.observe(cluster.pk)
            return all(State(job.state) in TERMINAL for job in Job.objects.all())

        wait_for(over, 90, interval=0.2)
        for user, unix in ((alice, a), (bob, b)):
            [stream] = LogStream.objects.filter(attempt__job=theirs[user], role="worker")
            assert log_store.read(stream, 0, 100).data.decode() == f"{unix.pw_uid}\n"
        assert Attempt.objects.count() == 2
        assert can(alice, Verb.ENTER, theirs[alice])
        assert not can(bob, Verb.ENTER, theirs[alice])
        client = Client()
        client.force_login(bob)
        at = f"/api/console/v1/jobs/{theirs[alice].public_id}"
        assert client.get(f"{at}/logs?role=worker&index=0").status_code in (403, 404)
        assert client.post(f"{at}/stop").status_code in (403, 404)
        own = f"/api/console/v1/jobs/{theirs[bob].public_id}"
        assert client.get(f"{own}/logs?role=worker&index=0").status_code == 200
