"""Baidu's command line `aihc` (version 1) runs jobs on a console with the real local backend."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from jobs.models import Job
from quotas.accounts import access_keys, tokens
from quotas.models import User
from tests.clients import environments
from tests.waiting import wait_for

pytestmark = pytest.mark.once

SECONDS: Final = 120
POOL: Final = ("-p", "Local")


@dataclass(frozen=True)
class CommandLine:
    """The command line with a home of its own."""

    home: Path
    program: Path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command."""
        environ = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        return subprocess.run(
            [str(self.program), "-c", "from aihc_cli_py.runner import main; main()", *arguments],
            env={**environ, "HOME": str(self.home)},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def __call__(self, *arguments: str) -> str:
        """Run a command, which has to succeed; return what it printed."""
        done = self.run(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def configure(self, host: str, key_id: str, secret: str) -> None:
        """Set the key by its own command, and the console as its host, which has no command."""
        self("config", "--access_id", key_id, "--access_key", secret, "--region", "cn-beijing")
        file = self.home / ".aihc" / "config"
        file.write_text(re.sub(r"^host = .*$", f"host = {host}", file.read_text(), flags=re.MULTILINE))


@pytest.fixture
def aihc(console: str, person: User, tmp_path: Path) -> CommandLine:
    line = CommandLine(tmp_path, environments.python("aihc"))
    issued = access_keys.issue(person, scopes=tokens.SCOPES)
    line.configure(console.removeprefix("http://"), issued.row.key_id, issued.secret)
    return line


def submit(aihc: CommandLine, name: str, command: str, *more: str) -> str:
    """Submit a job; return its id."""
    size = ("--cpu", "1", "--memory", "0.25", "-w", "1")
    printed = aihc("job", "submit", *POOL, "-n", name, "-i", "python:3.12", "-c", command, *size, *more)
    found = re.fullmatch(r"Job (?P<name>\S+)/(?P<id>job-[a-z0-9]{12}) created successfully\n", printed)
    assert found is not None, printed
    assert found["name"] == name
    return found["id"]


def test_aihc_job_runs_to_its_end(aihc: CommandLine) -> None:
    job_id = submit(
        aihc, "hello", 'echo "$WORD"; echo done', "-e", "WORD=hello", "--label", "team=a", "-q", "default"
    )
    wait_for(lambda: Job.objects.filter(state="SUCCEEDED").exists())

    listed = aihc("job", "list", *POOL)
    assert job_id in listed
    assert "Succeeded" in listed
    assert "olga" in listed
    assert job_id not in aihc("job", "ls", *POOL, "-q", "other")
    assert job_id in aihc("job", "ls", *POOL, "-F", "PyTorchJob")
    assert "Succeeded" in aihc("job", "get", "hello", *POOL)
    assert f"{job_id}-worker-0" in aihc("job", "get", "hello", *POOL, "--pods", "yes")
    assert "['hello', 'done']" in aihc("logs", "hello", *POOL)
    assert "['done']" in aihc("logs", "hello", *POOL, "-t", "1", "--podname", f"{job_id}-worker-0")
    assert aihc("job", "delete", job_id, *POOL) == "hello in Local was deleted\n"
    assert job_id not in aihc("job", "list", *POOL)


def test_aihc_job_runs_and_is_stopped(aihc: CommandLine) -> None:
    job_id = submit(aihc, "long", "sleep 600")
    wait_for(lambda: Job.objects.filter(state="RUNNING").exists())

    assert "1/1" in aihc("job", "get", "long", *POOL)
    assert aihc("job", "stop", job_id, *POOL) == "long in Local was stoped\n"
    wait_for(lambda: Job.objects.filter(state="STOPPED").exists())


def test_aihc_pools_and_queues_are_read(aihc: CommandLine) -> None:
    assert "running" in aihc("pool", "list")
    assert "Local" in aihc("pool", "get", "Local")
    queues = aihc("queue", "list", *POOL)
    assert "default" in queues
    assert "default" in aihc("queue", "get", "default", *POOL)


def test_aihc_wrong_key_is_refused(aihc: CommandLine) -> None:
    aihc("config", "--access_key", "another")

    done = aihc.run("pool", "list")

    assert done.returncode != 0
    assert "SignatureDoesNotMatch" in done.stdout + done.stderr
