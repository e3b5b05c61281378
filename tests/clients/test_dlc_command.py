"""Our `dlc`, and a terminal of the SDK, against a whole console.

The commands are those of PAI-DLC's page.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from websockets.sync.client import connect

from tests.clients.test_dlc_services_sdk import NEWEST, run_client
from tests.scenes import MACHINE
from tests.seeds import FOLDER
from tests.stack import ADMIN, Stack, running
from tests.waiting import wait_for


@dataclass(frozen=True, slots=True)
class Dlc:
    """The command with a home of its own."""

    home: Path

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        proxies = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"}
        environ = {name: value for name, value in os.environ.items() if name.upper() not in proxies}
        command = [sys.executable, "-m", "jobs.client.dlc.cli", *words]
        return subprocess.run(
            command, env={**environ, "HOME": str(self.home)}, capture_output=True, text=True, check=False
        )

    def submit(self, *words: str) -> str:
        """Submit a job; return its id from the table, as scripts take it."""
        done = self.run("submit", *words)
        assert done.returncode == 0, done.stderr
        match = re.search(r"\s(dlc.*?) ", done.stdout)
        assert match is not None
        return match[1]

    def job(self, job: str) -> dict[str, Any]:
        done = self.run("get", "job", job)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def wait_for(self, job: str, status: str) -> None:
        wait_for(lambda: self.job(job)["Status"] == status, 60, interval=0.5)


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with running(MACHINE) as started:
        yield started


@pytest.fixture(scope="module")
def dlc(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Dlc:
    """Return the command, configured as the settings page says."""
    command = Dlc(tmp_path_factory.mktemp("home"))
    key = json.loads(stack.manage("issue_access_key", ADMIN))
    host = stack.base_url.removeprefix("http://")
    flags = ("--access_id", key["access_key_id"], "--access_key", key["access_key_secret"])
    done = command.run("config", *flags, "--endpoint", host, "--protocol", "http", "--region", "local")
    assert done.returncode == 0, done.stderr
    return command


COMMAND = ("--workspace_id=default", "--resource_id=default", "--workers=1", "--worker_cpu=1")


def test_page_example_is_submitted_shown_and_stopped(dlc: Dlc, tmp_path: Path) -> None:
    text = (FOLDER / "tfjob.params").read_text()
    text = re.sub(r"(?m)^(resource_id|workspace_id)=.*$", r"\1=default", text)
    file = tmp_path / "tfjob.params"
    file.write_text(text)
    job = dlc.submit("tfjob", "--job_file", str(file))
    shown = dlc.job(job)
    assert (shown["DisplayName"], shown["JobType"]) == ("test_cli_tfjob_001", "TFJob")
    assert (shown["JobId"], shown["UserCommand"]) == (job, "echo good && sleep 120")
    dlc.wait_for(job, "Running")
    listed = dlc.run("get", "job", "--workspace_id", "default", "-n", "cli_tfjob", "--status", "Running")
    rows = [line.split() for line in listed.stdout.splitlines()[1:]]
    assert [(row[0], row[1], row[7]) for row in rows] == [("test_cli_tfjob_001", job, "Running")]
    stopped = dlc.run("stop", "job", job)
    assert stopped.returncode == 0, stopped.stderr
    assert stopped.stderr.endswith(f"Job {job} is [Stopped]\n")
    assert dlc.job(job)["Status"] == "Stopped"


def test_log_of_a_pod_is_printed_and_followed_to_the_end(dlc: Dlc) -> None:
    command = "for i in 1 2 3 4; do echo line $i; sleep 1; done"
    job = dlc.submit("pytorchjob", "--name=counts", f"--command={command}", *COMMAND)
    dlc.wait_for(job, "Running")
    pod = dlc.job(job)["Pods"][0]["PodId"]
    followed = dlc.run("logs", job, pod, "-f")
    assert followed.returncode == 0, followed.stderr
    assert re.findall(r"line \d", followed.stdout) == ["line 1", "line 2", "line 3", "line 4"]
    printed = dlc.run("logs", job, pod, "--max_events_num", "1")
    assert printed.stdout.endswith("line 4\n")
    assert len(printed.stdout.splitlines()) == 1


def test_interactive_submission_fails_with_its_job(dlc: Dlc) -> None:
    flags = ("--name=fails", "--command=echo before the end; exit 3", *COMMAND, "--interactive")
    done = dlc.run("submit", "pytorchjob", *flags)
    assert done.returncode == 1
    assert "is [Failed]\n" in done.stdout
    assert done.stdout.endswith("before the end\n")


def test_quotas_and_instance_types_are_those_that_a_job_may_name(dlc: Dlc) -> None:
    listed = dlc.run("get", "quota", "--workspace_id", "default")
    assert listed.returncode == 0, listed.stderr
    assert "default" in [line.split()[0] for line in listed.stdout.splitlines()[1:]]
    shown = json.loads(dlc.run("get", "quota", "default", "-o", "json").stdout)
    assert [each["Id"] for row in shown["Resources"] for each in row["Quotas"]] == ["default"]
    unknown = dlc.run("get", "quota", "nothing")
    assert (unknown.returncode, unknown.stderr) == (1, "Quota nothing not found, or no permission.\n")
    specs = dlc.run("get", "specs", "--accelerator_type", "CPU", "--sort_by", "CPU", "--order", "asc")
    assert specs.returncode == 0, specs.stderr
    rows = [line.split() for line in specs.stdout.splitlines()[1:]]
    assert rows
    assert {row[1] for row in rows} == {"CPU"}


def test_ended_job_is_deleted(dlc: Dlc) -> None:
    job = dlc.submit("xgboostjob", "--name=short", "--command=true", *COMMAND)
    dlc.wait_for(job, "Succeeded")
    deleted = dlc.run("delete", "job", job, "-o", "json")
    assert json.loads(deleted.stdout)["JobId"] == job
    gone = dlc.run("get", "job", job)
    assert gone.returncode == 1
    assert re.search(r"RequestId: [0-9A-F-]{36}\n", gone.stderr)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--workspace_id=nowhere",), "nowhere"),
        (("--resource_id=nothing",), "nothing"),
        (("--priority=many",), "Priority"),
        (("--worker_cpu=lots",), "CPU"),
    ],
)
def test_refused_submission_says_what_is_wrong(dlc: Dlc, flags: tuple[str, ...], sentence: str) -> None:
    done = dlc.run("submit", "pytorchjob", "--name=n", "--command=true", *COMMAND, *flags)
    assert done.returncode == 1
    assert done.stdout == ""
    code, message, request_id = done.stderr.split("\n", 2)
    assert code.startswith("Error: ")
    assert sentence in message
    assert re.fullmatch(r"RequestId: [0-9A-F-]{36}\n", request_id)


def test_wrong_secret_is_refused_in_the_words_of_the_vendor(dlc: Dlc) -> None:
    done = dlc.run("get", "job", "-k", "wrong")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: SignatureDoesNotMatch (400)\n")


def test_revoked_key_is_refused(dlc: Dlc, stack: Stack) -> None:
    key = json.loads(stack.manage("issue_access_key", ADMIN, "--scopes", "read"))
    flags = ("-a", key["access_key_id"], "-k", key["access_key_secret"])
    assert dlc.run("get", "job", *flags).returncode == 0
    refused = dlc.run("submit", "tfjob", "--name=n", "--command=true", *COMMAND, *flags)
    assert refused.stderr.startswith("Error: NoPermission (403)\n")
    stack.python(
        "from quotas.accounts import access_keys\n"
        f"row = access_keys.find({key['access_key_id']!r})\n"
        "access_keys.revoke(row.user, row.pk)\n"
    )
    assert "InvalidAccessKeyId.NotFound" in dlc.run("get", "job", *flags).stderr


WAITING: Final = {
    "DisplayName": "hello",
    "JobType": "PyTorchJob",
    "JobSpecs": [{"Type": "Worker", "PodCount": 1, "ResourceConfig": {"CPU": "1", "Memory": "512Mi"}}],
    "UserCommand": "echo up; exec sleep 600",
}


def test_sdk_opens_a_terminal_of_a_whole_console(stack: Stack) -> None:
    key = json.loads(stack.manage("issue_access_key", ADMIN))
    with closing(stack.client()) as client:
        body = {"file": json.dumps(WAITING)}
        answer = client.post("/api/console/v1/jobs", json=body)
        assert answer.is_success, answer.text
        job = answer.json()["id"]
        wait_for(lambda: client.get(f"/api/console/v1/jobs/{job}").json()["state"] == "RUNNING", 120, 0.2)
    (terminal,) = run_client(
        NEWEST,
        "say(client.get_web_terminal(JOB, POD, models.GetWebTerminalRequest()).body)",
        ENDPOINT=stack.base_url.removeprefix("http://"),
        ALIBABA_CLOUD_ACCESS_KEY_ID=key["access_key_id"],
        ALIBABA_CLOUD_ACCESS_KEY_SECRET=key["access_key_secret"],
        JOB=f"dlc{job}",
        POD=f"dlc{job}-worker-0",
    )
    with connect(terminal["WebTerminalUrl"], proxy=None) as socket:
        socket.send(json.dumps({"operation": "stdin", "data": "echo in''side; exit\r"}))
        shown = ""
        while "inside" not in shown:
            shown += json.loads(socket.recv(timeout=60))["data"]
