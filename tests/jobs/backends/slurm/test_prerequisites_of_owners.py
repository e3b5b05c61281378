"""What jobs as their owners' own UNIX users take besides, each taken away in turn."""

from __future__ import annotations

import ctypes
import json
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.backends.base import NotSubmitted, Person, Refused, Unreachable
from jobs.backends.slurm.backend import SlurmBackend
from jobs.backends.slurm.client.programs import Programs
from jobs.backends.slurm.identity import folder_access, visibility
from tests import unix_users
from tests.jobs.backends.apart import User, by, of
from tests.jobs.backends.slurm_bench import SlurmBench
from tests.slurm import Slurm

pytestmark = pytest.mark.skipif(bool(unix_users.missing()), reason=unix_users.missing() or "there are some")

NEW_MOUNTS = 0x00020000
"""CLONE_NEWNS of linux/sched.h."""


@contextmanager
def leave(bench: SlurmBench, a: User, b: User) -> Iterator[None]:
    """What an admin gives a console that is `b`, so that it may run jobs as `a`."""
    sudoers = Path(f"/etc/sudoers.d/{b.pw_name}")
    try:
        sudoers.write_text(f"{b.pw_name} ALL=({a.pw_name}) NOPASSWD: {bench.config.helper}\n")
        sudoers.chmod(0o440)
        yield
    finally:
        sudoers.unlink(missing_ok=True)


@pytest.fixture
def not_root(by_sudo: SlurmBench, b: User) -> SlurmBench:
    """One whose folder and helper are for a console that is `b`."""
    shutil.chown(by_sudo.root, b.pw_uid, b.pw_gid)
    file = Path(f"{by_sudo.config.helper}.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "console": b.pw_name}))
    return by_sudo


def test_console_without_sudo_permission_is_reported(not_root: SlurmBench, b: User) -> None:
    def refused() -> None:
        with pytest.raises(Unreachable, match="sudo does not let the console run"):
            not_root.backend.inventory()

    by(b, refused)


@pytest.fixture
def private(slurm: Slurm) -> Iterator[None]:
    """A Slurm that shows people their own jobs alone."""
    before = slurm.configuration.read_text()
    slurm.configuration.write_text(f"{before}PrivateData=jobs,usage\n")
    slurm.call("scontrol", "reconfigure")
    yield
    slurm.configuration.write_text(before)
    slurm.call("scontrol", "reconfigure")


def test_hidden_job_list_blocks_submission(not_root: SlurmBench, a: User, b: User, private: None) -> None:
    held = not_root.slurm.call("sbatch", "--parsable", "--hold", "--wrap=true").strip()
    submission = of(not_root, a, "true")

    def refused() -> None:
        assert held not in Programs(not_root.config).squeue("--format=%A").split()
        with pytest.raises(Unreachable, match=f"does not show {b.pw_name} other people's jobs"):
            not_root.backend.inventory()
        with pytest.raises(NotSubmitted) as not_sent:
            not_root.backend.submit(submission)
        assert "PrivateData=jobs" in str(not_sent.value.reason.params["detail"])

    try:
        assert visibility.describe_hidden(not_root.config) == ""  # root is shown all
        with leave(not_root, a, b):
            by(b, refused)
    finally:
        not_root.slurm.call("scancel", held)


def test_file_system_without_acl_support_is_reported() -> None:
    def refused() -> None:
        assert ctypes.CDLL(None).unshare(NEW_MOUNTS) == 0
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        subprocess.run(["mount", "-t", "ramfs", "none", "/mnt"], check=True)
        with pytest.raises(Unreachable, match="keeps no POSIX access lists"):
            folder_access.check(Path("/mnt"))

    by(pwd.getpwuid(os.geteuid()), refused)


@pytest.mark.parametrize("identity", ["by_sudo", "by_jwt"])
def test_trial_as_person_returns_unix_user_and_refuses_root(
    identity: str, request: pytest.FixtureRequest, a: User
) -> None:
    bench: SlurmBench = request.getfixturevalue(identity)
    backend = SlurmBackend(replace(bench.config, partitions={}))
    assert backend.try_as(Person("somebody", 7, a.pw_name)) == a.pw_name
    assert [path.name for path in bench.root.iterdir() if not path.name.startswith(".")] == []
    with pytest.raises(Refused) as refused:
        backend.try_as(Person("somebody", 7, "root"))
    assert refused.value.reason.params["why"] == "unix_name_of_the_system"


def test_trial_as_person_uses_configured_partition(by_sudo: SlurmBench, a: User) -> None:
    config = replace(by_sudo.config, partition="none-such")
    with pytest.raises(Unreachable, match=f"takes no job of {a.pw_name} with --partition=none-such"):
        SlurmBackend(config).try_as(Person("somebody", 7, a.pw_name))
