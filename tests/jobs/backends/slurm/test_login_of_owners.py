"""Jobs as their owners' own UNIX users by a helper on a login node, or where slurmrestd is looked at.

What holds whichever way people are told apart is in `test_unix_users`, and is looked at here in these two.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.backends.base import NotSubmitted, Unreachable
from jobs.backends.sessions import Ended
from jobs.backends.slurm.backend import SlurmBackend
from jobs.backends.slurm.client.login import Login
from jobs.backends.slurm.config import DOOR
from jobs.states import State
from tests import unix_users
from tests.jobs.backends.apart import User, by, of, started
from tests.jobs.backends.benches import log_of, wait_until_over
from tests.jobs.backends.beside import list_files, run
from tests.jobs.backends.slurm import test_unix_users as whom
from tests.jobs.backends.slurm.test_prerequisites_of_owners import leave
from tests.jobs.backends.slurm_bench import Releasing, SlurmBench
from tests.sshd import Server

pytestmark = pytest.mark.skipif(bool(unix_users.missing()), reason=unix_users.missing() or "there are some")

WAYS = ("by_sudo_there", "by_sudo_and_rest")


@pytest.mark.parametrize("way", WAYS)
def test_job_on_login_node_runs_as_its_owner(
    way: str, request: pytest.FixtureRequest, a: User, b: User
) -> None:
    bench: SlurmBench = request.getfixturevalue(way)
    assert bench.backend.inventory().nodes
    whom.test_job_runs_as_its_owner_and_is_closed_to_others(bench, a, b)
    whom.test_stop_dry_run_and_cleanup_work_for_owner_job(bench, a)


async def test_session_by_listener_runs_as_job_user(by_sudo_there: SlurmBench, a: User) -> None:
    assert by_sudo_there.config.enters == DOOR
    handle = await asyncio.to_thread(started, by_sudo_there, a, "echo kept > note; echo up; exec sleep 600")
    said, ended = await run(by_sudo_there, handle, "id -u; id -un; cat note")
    assert (said, ended) == (f"{a.pw_uid}\n{a.pw_name}\nkept\n", Ended(exit_code=0))
    await asyncio.to_thread(by_sudo_there.backend.stop, handle, grace_s=0, signal="KILL")
    await asyncio.to_thread(wait_until_over, by_sudo_there.backend, handle)
    assert "note" in await list_files(by_sudo_there, handle)


@pytest.fixture
def not_root(by_sudo_there: SlurmBench, sshd: Server, b: User) -> SlurmBench:
    """A console that is `b`, here and there."""
    shutil.chown(by_sudo_there.root, b.pw_uid, b.pw_gid)
    file = Path(f"{by_sudo_there.config.helper}.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "console": b.pw_name}))
    login = Login(**sshd.login(b.pw_name))
    by_sudo_there.config = replace(by_sudo_there.config, login=login)
    by_sudo_there.backend = Releasing(by_sudo_there.config)
    return by_sudo_there


def test_unprivileged_console_needs_sudo_rule_on_login_node(not_root: SlurmBench, a: User, b: User) -> None:
    submission = of(not_root, a, "id -u; mkdir shut; touch shut/x; chmod 0 shut")

    def refused() -> None:
        with pytest.raises(Unreachable, match=r"sudo does not let the console run .* on 127\.0\.0\.1"):
            not_root.backend.inventory()
        with pytest.raises(NotSubmitted):
            not_root.backend.submit(submission)

    def all_of_it() -> None:
        assert not_root.backend.inventory().nodes
        handle = not_root.backend.submit(submission)
        assert wait_until_over(not_root.backend, handle).state is State.SUCCEEDED
        assert log_of(not_root.backend, handle) == f"{a.pw_uid}\n"
        not_root.backend.forget(handle)
        assert not not_root.attempt(handle).exists()

    by(b, refused)
    with leave(not_root, a, b):
        by(b, all_of_it)


def test_missing_or_writable_helper_on_login_node_is_reported(by_sudo_there: SlurmBench) -> None:
    helper = Path(by_sudo_there.config.helper)
    helper.chmod(0o777)
    with pytest.raises(Unreachable, match=r"helper on 127\.0\.0\.1 has to be root's"):
        by_sudo_there.backend.inventory()
    helper.unlink()
    with pytest.raises(Unreachable, match=r"There is no .*helper on 127\.0\.0\.1: with identity sudo"):
        by_sudo_there.backend.inventory()


def test_failed_login_sends_nothing(by_sudo_there: SlurmBench, a: User) -> None:
    """Least of all from here, where the helper lies too."""
    assert by_sudo_there.config.login is not None
    away = replace(by_sudo_there.config, login=replace(by_sudo_there.config.login, port=1))
    backend = SlurmBackend(away)
    with pytest.raises(NotSubmitted):
        backend.submit(of(by_sudo_there, a, "true"))
    assert not by_sudo_there.live()
    submission = of(by_sudo_there, a, "sleep 600")
    handle = by_sudo_there.backend.submit(submission)
    with pytest.raises(Unreachable, match="no SSH connection"):
        backend.release([handle])
    with pytest.raises(Unreachable, match="no SSH connection"):
        backend.stop(handle, grace_s=0, signal="KILL")
    assert by_sudo_there.live()
