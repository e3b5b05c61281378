"""paicli, a command line for OpenPAI's first version, runs jobs on a console with the real local backend."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from django.conf import LazySettings

from jobs.models import Job, SshKey
from quotas.accounts import tokens
from quotas.models import User
from tests.clients import environments
from tests.factories import PASSWORD
from tests.waiting import wait_for

pytestmark = pytest.mark.once

SECONDS = 60
START = (
    "import collections, collections.abc; "
    "vars(collections).update(vars(collections.abc)); "
    "from paicli.main import main; main()"
)
"""It pins a prompt-toolkit that imports from `collections` what Python 3.10 has moved; that is put back."""

HOST = "localhost"


def job_file(name: str, command: str) -> str:
    return json.dumps(
        {
            "jobName": name,
            "image": "python:3.12",
            "taskRoles": [
                {
                    "name": "main",
                    "taskNumber": 1,
                    "cpuNumber": 1,
                    "memoryMB": 512,
                    "gpuNumber": 0,
                    "command": command,
                }
            ],
        }
    )


@dataclass(frozen=True)
class Paicli:
    """The command line with a home of its own."""

    home: Path
    interpreter: Path

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        """Run a command, which has to succeed; return what it printed."""
        environ = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        done = subprocess.run(
            [str(self.interpreter), "-c", START, *arguments],
            env={**environ, "HOME": str(self.home)},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def pai(console: str, person: User, tmp_path: Path, settings: LazySettings) -> Paicli:
    """Return paicli with the console as its host; the address has a token, as it sends none with GETs."""
    settings.CONSOLE_OPENPAI_HOST = HOST
    settings.CONSOLE_SSH_PORT = 2222
    token = tokens.issue(person, scopes=("read", "submit", "stop", "exec"), lifetime=timedelta(hours=1))
    folder = tmp_path / ".paicli"
    folder.mkdir()
    profile = {
        "host": f"{person.username}:{token}@{HOST}",
        "port": urlsplit(console).port,
        "username": person.username,
        "password": PASSWORD,
    }
    (folder / "config.yaml").write_text(yaml.safe_dump({"default": profile}))
    return Paicli(tmp_path, environments.python("paicli"))


def state_of(name: str) -> str:
    return str(Job.objects.get(name=name).state)


def test_paicli_submits_job_and_lists_it(pai: Paicli) -> None:
    pai("token")
    issued = (pai.home / ".paicli" / ".token_default").read_text()
    assert tokens.verify(issued) is not None
    assert "Successfully submitted!" in pai("submit", stdin=job_file("greeting", "echo hello"))
    wait_for(lambda: state_of("greeting") == "SUCCEEDED")
    listed = pai("jobs")
    assert "greeting" in listed
    assert "SUCCEEDED" in listed
    assert "greeting" in pai("jobs", "-u", "olga", "-s", "SUCCEEDED")
    pai("host", "greeting")


def test_paicli_makes_ssh_command_and_stops_job(pai: Paicli) -> None:
    pai("token")
    pai("submit", stdin=job_file("sleeper", "sleep 600"))
    wait_for(lambda: state_of("sleeper") == "RUNNING")
    job = Job.objects.get(name="sleeper")
    command = pai("ssh", "sleeper", "--dryrun")
    assert f"-p 2222 -oStrictHostKeyChecking=no root@{job.public_id}.main-0@{HOST}" in command
    assert (pai.home / ".paicli" / ".tmpkey").read_text().startswith("-----BEGIN OPENSSH PRIVATE KEY-----")
    assert SshKey.objects.get(job=job).user.username == "olga"
    assert "Stop signal submitted!" in pai("stop", "sleeper")
    wait_for(lambda: state_of("sleeper") == "STOPPED")
