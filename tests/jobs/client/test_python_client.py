"""`from job_console import Client`, from the built wheel in an environment of its own, at a real console."""

from __future__ import annotations

import re
import subprocess
import textwrap
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from console.home import CHECKOUT
from jobs.client import errors
from jobs.client.python_client import Client
from jobs.models import Job
from quotas.accounts import tokens
from quotas.models import User
from tests.jobs.client.test_wheel_builder import venv

__all__ = ["venv"]
pytestmark = pytest.mark.once

SECONDS = 120
PAGE = CHECKOUT / "docs" / "clients" / "python.md"
EXAMPLE = CHECKOUT / "docs" / "examples" / "client.py"
Run = Callable[[str], str]

PROGRAM = r"""
import sys
import time
from pathlib import Path
from job_console import (
    AccessDeniedError, AuthenticationError, Client, ConflictError, InvalidRequestError, NotFoundError,
    UnavailableError, WaitTimeoutError,
)
url, token, reader, folder = sys.argv[1:]


def fails(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(kind)


def wait_for(predicate):
    deadline = time.monotonic() + 60
    while not predicate():
        assert time.monotonic() < deadline, "not true within 60 s"
        time.sleep(0.1)


def job(name, command):
    return f"#!/bin/bash\n#SBATCH --job-name={name} --cpus-per-task=1 --mem=256M\n\n{command}\n"
"""


@pytest.fixture
def run(console: str, person: User, venv: Path, tmp_path: Path) -> Run:
    made = [
        tokens.issue(person, scopes=scopes, lifetime=timedelta(days=1))
        for scopes in (["read", "submit", "stop", "exec"], ["read"])
    ]

    def call(body: str) -> str:
        done = subprocess.run(
            [f"{venv}/bin/python", "-c", PROGRAM + textwrap.dedent(body), console, *made, str(tmp_path)],
            cwd=tmp_path,
            env={"HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


def test_client_submits_waits_reads_logs_and_runs_again(run: Run) -> None:
    printed = run(
        """
        with Client(url, token) as console:
            made = console.submit(job("one", "for i in 1 2 3; do echo line $i; done"), idempotency_key="k")
            same = console.submit(job("one", "for i in 1 2 3; do echo line $i; done"), idempotency_key="k")
            assert same.id == made.id
            ended = console.wait(made.id, timeout=60)
            assert ended.is_succeeded and set(ended.exit_codes.values()) == {0}, ended
            print(b"".join(console.logs(made.id)).decode(), end="")
            print(b"".join(console.logs(made.id, follow=True)).decode(), end="")
            states = [event.data["state"] for event in console.stream(made.id) if event.name == "state"]
            assert states == ["SUCCEEDED"], states
            again = console.again(made.id)
            assert console.wait(again.id, timeout=60).is_succeeded
            Path(folder, "job.json").write_text('{"jobName": 7}')
            error = fails(InvalidRequestError, lambda: console.submit(Path(folder, "job.json")))
            assert any(each.pointer == "/jobName" for each in error.problems), error.problems
            assert [each.id for each in console.list(owner="me", page_size=1)] == [again.id, made.id]
            assert list(console.list(state="LOST")) == []
        """
    )
    assert printed == "line 1\nline 2\nline 3\n" * 2
    assert Job.objects.count() == 2


@pytest.mark.usefixtures("file_gateway")
def test_client_stops_jobs_and_reads_their_files(run: Run) -> None:
    run(
        """
        with Client(url, token) as console:
            made = console.submit(job("two", "echo hello > word.txt; sleep 600"))
            error = fails(WaitTimeoutError, lambda: console.wait(made.id, timeout=0.1))
            assert error.job.id == made.id
            fails(ConflictError, lambda: console.again(made.id))
            wait_for(lambda: console.get(made.id).state == "RUNNING")
            assert console.endpoints(made.id) == ()
            wait_for(lambda: "word.txt" in [entry.path for entry in console.list_files(made.id)])
            assert console.download(made.id, "word.txt", Path(folder, "copy")).read_text() == "hello\\n"
            fails(NotFoundError, lambda: console.download(made.id, "nothing", Path(folder, "none")))
            assert not list(Path(folder).glob(".*part")) and not Path(folder, "none").exists()
            console.stop(made.id)
            assert console.wait(made.id, timeout=60).state == "STOPPED"
        """
    )


def test_client_raises_an_exception_for_each_refusal(run: Run) -> None:
    run(
        """
        fails(AuthenticationError, lambda: Client(url, "jc_wrong").get("a"))
        fails(AccessDeniedError, lambda: Client(url, reader).submit(job("a", "b")))
        fails(NotFoundError, lambda: Client(url, reader).get("abcdefghijkl"))
        fails(InvalidRequestError, lambda: Client(url, token).submit("{}"))
        fails(UnavailableError, lambda: Client("http://127.0.0.1:9", token, retries=1).get("a"))
        """
    )


@pytest.mark.usefixtures("file_gateway")
def test_client_example_of_its_page_runs_as_it_stands(
    console: str, person: User, venv: Path, tmp_path: Path
) -> None:
    token = tokens.issue(person, scopes=["read", "submit", "stop", "exec"], lifetime=timedelta(days=1))
    done = subprocess.run(
        [f"{venv}/bin/python", str(EXAMPLE)],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "JOB_CONSOLE_URL": console, "JOB_CONSOLE_TOKEN": token},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    log, ended, files, copy = done.stdout.splitlines()
    assert (log, copy) == ("hello", "hello")
    assert re.fullmatch(r"hello SUCCEEDED \{'\w+/0': 0\}", ended)
    assert files.startswith("True [")
    assert "'greeting.txt'" in files


def test_client_page_names_every_method_and_error() -> None:
    page = PAGE.read_text()
    methods = [name for name in vars(Client) if not name.startswith("_")]
    assert [name for name in methods if f"`{name}(" not in page] == []
    assert [name for name in vars(errors) if name.endswith("Error") and f"`{name}`" not in page] == []


def test_client_submits_a_job_spec(run: Run) -> None:
    run(
        """
        from jobs.spec import JobSpec, RoleSpec
        with Client(url, token) as console:
            made = console.submit(JobSpec(name="spec", roles=(RoleSpec(name="main", command="true"),)))
            assert made.name == "spec"
            console.stop(made.id)
            console.wait(made.id, timeout=60)
        """
    )


def test_client_has_types(venv: Path) -> None:
    (site,) = venv.glob("lib/python*/site-packages")
    assert (site / "job_console" / "py.typed").is_file()
    assert (site / "jobs" / "py.typed").is_file()
