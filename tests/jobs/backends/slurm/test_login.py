"""Slurm's programs on a login node: a real sshd, of this machine."""

from __future__ import annotations

import asyncio
import os
import pwd
import shlex
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import NotSubmitted, Unreachable
from jobs.backends.sessions import Ended
from jobs.backends.slurm.backend import SlurmBackend
from jobs.backends.slurm.client import login, prerequisites
from jobs.backends.slurm.config import SlurmConfig
from jobs.states import State
from tests.jobs.backends.benches import log_of, role, wait_until_over
from tests.jobs.backends.beside import list_files, run, start
from tests.jobs.backends.slurm_bench import SlurmBench
from tests.slurm import NODES, Slurm
from tests.sshd import Server


@pytest.fixture
def node(sshd: Server) -> dict[str, Any]:
    """The settings with which the console's own user signs in."""
    return sshd.login(pwd.getpwuid(os.geteuid()).pw_name)


@contextmanager
def a_bench(folder: Path, slurm: Slurm, node: dict[str, Any], **more: Any) -> Iterator[SlurmBench]:
    folder.mkdir()
    settings = {"login": {**node, **more}, "timeout_s": 30, "partitions": {}}
    made = SlurmBench(folder, slurm, settings)
    yield made
    made.close()


async def test_sessions_reach_jobs_submitted_by_login_node(
    tmp_path: Path, slurm: Slurm, node: dict[str, Any]
) -> None:
    with a_bench(tmp_path / "there", slurm, node) as there:
        command = "echo kept > note; echo up; exec sleep 600"
        handle = await asyncio.to_thread(start, there, command)  # a program there has a loop of its own
        assert await run(there, handle, "cat note; exit 5") == ("kept\n", Ended(exit_code=5))
        assert "note" in await list_files(there, handle)


def test_job_submitted_by_login_node_reports_its_end(
    tmp_path: Path, slurm: Slurm, node: dict[str, Any]
) -> None:
    with a_bench(tmp_path / "there", slurm, node) as there:
        submission = there.submission(role('env | grep -c ^SSH_; echo "it\'s $HOME"; exit 3'))
        handle = there.backend.submit(submission)
        assert there.backend.find([submission.key])[submission.key] == [handle]
        seen = wait_until_over(there.backend, handle)
        assert seen.state is State.FAILED
        home = pwd.getpwuid(os.geteuid()).pw_dir
        assert log_of(there.backend, handle) == f"0\nit's {home}\n"
        assert len(there.backend.inventory().nodes) == 4
        stopped = there.backend.submit(there.submission(role("sleep 300")))
        there.backend.stop(stopped, grace_s=0, signal="KILL")
        assert wait_until_over(there.backend, stopped).state is State.STOPPED


def test_wrong_host_key_or_absent_login_node_sends_nothing(
    tmp_path: Path, slurm: Slurm, node: dict[str, Any]
) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        away = {"port": int(nobody.getsockname()[1])}
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "other"], check=True)
        other = {"host_key": (tmp_path / "other.pub").read_text()}
        for name, wrong in (("away", away), ("other", other)):
            with a_bench(tmp_path / f"at-{name}", slurm, node, **wrong) as there:
                with pytest.raises(Unreachable, match="no SSH connection to"):
                    there.backend.inventory()
                with pytest.raises(NotSubmitted):
                    there.backend.submit(there.submission())


def test_prerequisites_are_checked_on_login_node(
    tmp_path: Path, slurm: Slurm, node: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prerequisites, "PATH", "/nowhere")
    with a_bench(tmp_path / "there", slurm, node) as there:
        assert there.backend.check().nodes == NODES
        away = SlurmBackend(replace(there.config, programs="/nowhere"))
        with pytest.raises(Unreachable, match="no programs of Slurm on the login node"):
            away.inventory()


def test_login_command_words_are_quoted_for_remote_shell(node: dict[str, Any]) -> None:
    odd = ["a b", "$(touch /tmp/x)", "`id`", "'; exit 7; '", "", "*", "-n", "é\n"]
    settings = login.Login(**node)
    words = ["printf", "%s|", *odd]
    code, out, _err = login.run(settings, words, {"LANG": "C.UTF-8; id"}, "", 30)
    assert (code, out.decode()) == (0, "".join(f"{word}|" for word in odd))
    assert shlex.split(login.build_command(words, {"A": "b c"}))[-len(words) :] == words


@pytest.mark.parametrize(
    "wrong",
    [
        {"host": "-oProxyCommand=x"},
        {"user": "a b"},
        {"port": 0},
        {"private_key": "nonsense"},
        {"host_key": ""},
        {"password": "x"},
    ],
    ids=str,
)
def test_invalid_login_settings_are_refused(
    wrong: dict[str, Any], node: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises((TypeError, ValueError)):
        SlurmConfig.from_settings(tmp_path, {"login": {**node, **wrong}})


def test_login_repr_contains_no_private_key(node: dict[str, Any]) -> None:
    assert "PRIVATE KEY" not in repr(login.Login(**node))
