"""`exec`, `cp`, `wait`, `delete` and `logs --all` on a job that really runs."""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import LazySettings

from jobs.models import Job, SshKey
from jobs.states import State
from quotas.accounts import tokens
from quotas.models import User
from tests import required
from tests.jobs.access.terminal_gateway.conftest import shells
from tests.jobs.client.test_run import Terminal, job_of, terminal
from tests.ports import free_port
from tests.waiting import wait_for

pytestmark = pytest.mark.once

COMMAND = "mkdir out; echo result > out/a; printf 'one\\ntwo'; exec sleep 600"
SIZE = ("--nodes", "2", "--cpus", "0.5", "--memory", "64M")
LIMITS = ("--time", "10m", "--tag", "team=nlp", "--port", "8080")


@pytest.fixture
def call(console: str, person: User, folder: Path, tmp_path: Path, settings: LazySettings) -> Terminal:
    """A terminal whose token reaches into jobs."""
    made = terminal(console, person, folder, tmp_path)
    token = tokens.issue(person, scopes=["read", "submit", "stop", "exec"], lifetime=timedelta(days=1))
    return Terminal(made.folder, {**made.environ, "JOB_CONSOLE_TOKEN": token})


def test_commands_reach_into_a_running_job_and_tell_its_end(
    call: Terminal, folder: Path, settings: LazySettings
) -> None:
    required.skip_without("ssh", "openssh-client")
    settings.CONSOLE_SSH_PORT = free_port()
    started = call(
        "run", "--detach", "--no-code", "--name", "fast", *SIZE, *LIMITS, "--", "sh", "-c", COMMAND
    )
    job = Job.objects.get(public_id=job_of(started[2]))
    wait_for(lambda: Job.objects.get(pk=job.pk).state == State.RUNNING, 60)
    wait_for(lambda: call("logs", "--all", "fast")[1].count("two") == 2, 60)
    with shells():
        _run_commands(call)
        _copy_files(call, folder)
    assert list(SshKey.objects.values_list("job", flat=True)) == [job.pk]
    _follow_to_the_end(call, job)


def _run_commands(call: Terminal) -> None:
    """A command's output, input and exit status are those of the job's; a replica can be named."""
    said = call(
        "exec", "fast", "--", "sh", "-c", 'read word; echo "$word of $(hostname)"; exit 5', stdin="hi\n"
    )
    assert (said[0], said[1].startswith("hi of ")) == (5, True), said
    second = call("exec", "--replica", "worker/1", "fast", "--", "hostname")
    assert (second[0], second[1].strip().endswith("worker-1")) == (0, True), second
    assert call("exec", "--replica", "worker/7", "fast", "--", "true")[0] == 125


def _copy_files(call: Terminal, folder: Path) -> None:
    """Files and folders arrive whole, in both directions; what is not there is told."""
    (folder / "data" / "deep").mkdir(parents=True)
    (folder / "data" / "deep" / "b").write_bytes(b"\0" * 100_000)
    (folder / "data" / "link").symlink_to("/etc/passwd")
    assert call("cp", "word.txt", "fast:")[0] == 0
    assert call("cp", "data", "fast:")[0] == 0
    assert call("exec", "fast", "--", "sh", "-c", "cat word.txt; find data")[1].split() == [
        "hello",
        *("data", "data/deep", "data/deep/b"),
    ]
    assert call("cp", "fast:out", "fetched")[0] == 0
    assert (folder / "fetched" / "a").read_text() == "result\n"
    assert call("cp", "fast:out/a", ".")[0] == 0
    assert (folder / "a").read_text() == "result\n"
    assert call("cp", "fast:nothing", ".")[0] == 125
    assert call("cp", "word.txt", "other.txt")[0] == 2


def _follow_to_the_end(call: Terminal, job: Job) -> None:
    """All replicas' lines come once each; `logs` and `wait` end with the job's exit status."""
    assert call("wait", "--timeout", "1s", "fast")[0] == 124
    assert call("delete", "fast")[0] == 125
    following = subprocess.Popen(
        call.command("logs", "-f", "--all", "fast"),
        env=call.environ,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert following.stdout is not None
    assert {following.stdout.readline() for _ in range(2)} == {"[worker/0] one\n", "[worker/1] one\n"}
    assert call("stop", "fast")[0] == 0
    rest, _err = following.communicate(timeout=60)
    assert (sorted(rest.splitlines()), following.returncode) == (["[worker/0] two", "[worker/1] two"], 143)
    status, out, _err = call("wait", "--json", "fast")
    assert (status, json.loads(out)[0]["id"]) == (143, job.public_id)
    assert "fast" in call("list", "--state", "STOPPED")[1]
    assert call("exec", "fast", "--", "true")[0] == 125
    assert json.loads(call("delete", "--json", "fast")[1]) == [job.public_id]
    assert "No job" in call("status", "fast")[2]


def test_exec_without_scope_or_program_says_what_is_missing(
    console: str, person: User, folder: Path, tmp_path: Path
) -> None:
    call = terminal(console, person, folder, tmp_path)
    job = job_of(call("run", "--detach", "--no-code", "--", "sleep", "60")[2])
    assert "exec" in call("exec", job, "--", "true")[2]
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "env").symlink_to(str(shutil.which("env")))
    without = Terminal(folder, {**call.environ, "PATH": str(programs)})
    assert "There is no ssh on this machine" in without("exec", job)[2]
    assert call("stop", job)[0] == 0
