"""Jobs as their owners' own UNIX users, on a real Slurm: who gets at them, and who is refused."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.backends.base import DryRunCheck, LogState, Person, Refused, ReplicaRef, Unreachable
from jobs.backends.remote import bundle
from jobs.backends.slurm.handles import SlurmJob
from jobs.backends.slurm.identity import as_user
from jobs.backends.slurm.identity import unix_users as whom
from jobs.spec import SecretRef
from jobs.states import State
from tests import unix_users
from tests.jobs.backends.apart import User, as_, by, does, of, started
from tests.jobs.backends.benches import log_of, role, wait_until_over
from tests.jobs.backends.beside import run
from tests.jobs.backends.slurm_bench import SlurmBench
from tests.waiting import wait_for

pytestmark = pytest.mark.skipif(bool(unix_users.missing()), reason=unix_users.missing() or "there are some")


@pytest.fixture(params=["sudo", "jwt"])
def apart(request: pytest.FixtureRequest) -> SlurmBench:
    """A cluster that tells people apart, in either way."""
    made: SlurmBench = request.getfixturevalue(f"by_{request.param}")
    return made


def asked(bench: SlurmBench, user: User, *words: str) -> subprocess.CompletedProcess[str]:
    """What comes of asking the helper for something, as the console does."""
    command = ["sudo", "-n", "-u", user.pw_name, "--", bench.config.helper, *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL, cwd="/"
    )


def test_job_runs_as_its_owner_and_is_closed_to_others(apart: SlurmBench, a: User, b: User) -> None:
    handles = {
        user.pw_name: apart.backend.submit(
            replace(
                of(apart, user, "id -u; echo $USER $HOME $SECRET; echo kept > note; echo mine >&2"),
                spec=apart.submission(
                    role("id -u; echo $USER $HOME $SECRET; echo kept > note"),
                    secret_env={"SECRET": SecretRef(name="s")},
                ).spec,
                secrets={"s": f"of {user.pw_name}"},
            )
        )
        for user in (a, b)
    }
    for user, other in ((a, b), (b, a)):
        handle = handles[user.pw_name]
        assert wait_until_over(apart.backend, handle).state is State.SUCCEEDED
        assert (
            log_of(apart.backend, handle)
            == f"{user.pw_uid}\n{user.pw_name} {user.pw_dir} of {user.pw_name}\n"
        )
        folder = apart.attempt(handle)
        assert not (folder / "secrets").exists()
        log = folder / "run-1" / "logs" / "worker-0.output"
        note = folder / "run-1" / "work" / "worker-0" / "note"
        for path in (log, note):
            assert path.stat().st_uid == user.pw_uid
            assert does(user, "cat", str(path)).returncode == 0
            assert does(other, "cat", str(path)).returncode != 0
        assert does(other, "ls", str(folder)).returncode != 0
        for ours in ("job.json", "sent"):
            assert does(user, "cat", str(folder / ours)).returncode != 0
            assert does(user, "rm", "-f", str(folder / ours)).returncode != 0


def test_stop_dry_run_and_cleanup_work_for_owner_job(apart: SlurmBench, a: User) -> None:
    submission = of(apart, a, "mkdir -p shut/deep; touch shut/deep/x; chmod 0 shut; echo up; exec sleep 600")
    assert DryRunCheck("user", True, detail=a.pw_name) in apart.backend.dry_run(submission)
    handle = apart.backend.submit(submission)
    wait_for(lambda: log_of(apart.backend, handle), 60)
    assert apart.backend.find([submission.key]) == {submission.key: [handle]}
    apart.backend.stop(handle, grace_s=1, signal="TERM")
    assert wait_until_over(apart.backend, handle).state is State.STOPPED
    apart.backend.forget(handle)
    assert not apart.attempt(handle).exists()


async def test_session_runs_as_job_user(by_sudo: SlurmBench, a: User) -> None:
    handle = started(by_sudo, a, "echo up; exec sleep 600")
    said, ended = await run(by_sudo, handle, "id -u; pwd; id -un")
    assert said.split() == [str(a.pw_uid), f"{by_sudo.attempt(handle)}/run-1/work/worker-0", a.pw_name]
    assert ended.exit_code == 0


def test_helper_refuses_access_to_job_of_another_user(by_sudo: SlurmBench, a: User, b: User) -> None:
    handle = started(by_sudo, a, "echo up; exec sleep 600")
    sent = SlurmJob.of(handle)
    number = str(sent.number)
    archive = bundle.publish(by_sudo.root, for_all=True).name
    assert asked(by_sudo, b, "cancel", "all", "-", number).returncode
    assert asked(by_sudo, b, "release", number).returncode
    assert asked(by_sudo, b, "enter", number, "-", "cpu1", archive).returncode
    assert asked(by_sudo, b, "look", sent.key, archive).returncode
    assert asked(by_sudo, b, "remove", sent.key).returncode
    assert log_of(by_sudo.backend, handle) == "up\n"
    assert by_sudo.backend.observe([handle])[handle].state is State.RUNNING  # type: ignore[union-attr]


def test_helper_leaves_user_job_from_elsewhere_alone(by_sudo: SlurmBench, a: User) -> None:
    command = ("sbatch", "--parsable", "--hold", "--chdir=/", "--output=/dev/null", "--wrap=true")
    number = by_sudo.slurm.call(*as_(a), *command).strip()
    try:
        assert asked(by_sudo, a, "cancel", "all", "-", number).returncode
        assert number in by_sudo.slurm.call("squeue", "--noheader", "--format=%A")
    finally:
        by_sudo.slurm.call("scancel", number)


def test_namesake_job_of_another_user_is_not_taken_for_own(apart: SlurmBench, a: User, b: User) -> None:
    submission = of(apart, a, "true")
    command = (
        "sbatch",
        "--parsable",
        "--hold",
        "--chdir=/",
        "--output=/dev/null",
        f"--job-name={submission.key}",
    )
    number = apart.slurm.call(*as_(b), *command, "--wrap=true").strip()
    try:
        assert apart.backend.find([submission.key]) == {submission.key: []}
        handle = apart.backend.submit(submission)
        assert SlurmJob.of(handle).number != int(number)
        assert wait_until_over(apart.backend, handle).state is State.SUCCEEDED
    finally:
        apart.slurm.call("scancel", number)


def test_unprivileged_console_runs_and_removes_owner_job(by_sudo: SlurmBench, a: User, b: User) -> None:
    sudoers = Path(f"/etc/sudoers.d/{b.pw_name}")
    shutil.chown(by_sudo.root, b.pw_uid, b.pw_gid)
    file = Path(f"{by_sudo.config.helper}.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "console": b.pw_name}))
    submission = of(by_sudo, a, "id -u; mkdir shut; touch shut/x; chmod 0 shut")

    def all_of_it() -> None:
        assert by_sudo.backend.inventory().nodes
        handle = by_sudo.backend.submit(submission)
        assert wait_until_over(by_sudo.backend, handle).state is State.SUCCEEDED
        assert log_of(by_sudo.backend, handle) == f"{a.pw_uid}\n"
        by_sudo.backend.forget(handle)
        assert not by_sudo.attempt(handle).exists()

    try:
        sudoers.write_text(f"{b.pw_name} ALL=({a.pw_name}) NOPASSWD: {by_sudo.config.helper}\n")
        sudoers.chmod(0o440)
        by(b, all_of_it)
    finally:
        sudoers.unlink(missing_ok=True)


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("shell",),
        ("submit",),
        ("submit", "../../etc"),
        ("submit", "a-b-0"),
        ("submit", "x-job9-1"),
        ("cancel", "all", "-", "1;id"),
        ("cancel", "all", "--user=root", "1"),
        ("cancel", "--user=root", "-", "1"),
        ("release", "1 2"),
        ("enter", "1", "-", "-N2", "0" * 24 + ".pyz"),
        ("enter", "1", "--uid=0", "cpu1", "0" * 24 + ".pyz"),
        ("look", "x-job9-1", "../evil"),
    ],
)
def test_helper_refuses_other_commands(by_sudo: SlurmBench, a: User, words: tuple[str, ...]) -> None:
    assert asked(by_sudo, a, *words).returncode in (1, as_user.REFUSED)


def test_helper_refuses_system_users_and_writable_settings(by_sudo: SlurmBench, a: User) -> None:
    for user in (pwd.getpwnam("root"), pwd.getpwnam("daemon")):
        done = asked(by_sudo, user, "test")
        assert (done.returncode, "system" in done.stderr) == (as_user.REFUSED, True)
    Path(f"{by_sudo.config.helper}.json").chmod(0o666)
    assert asked(by_sudo, a, "test").returncode == as_user.REFUSED
    with pytest.raises(Unreachable, match="has to be root's"):
        by_sudo.backend.inventory()


def test_closed_folder_or_missing_helper_is_named(by_sudo: SlurmBench) -> None:
    assert by_sudo.backend.inventory().nodes
    by_sudo.root.chmod(0o700)
    with pytest.raises(Unreachable, match="is closed to the users"):
        by_sudo.backend.inventory()
    Path(by_sudo.config.helper).unlink()
    with pytest.raises(Unreachable, match="install the helper"):
        by_sudo.backend.inventory()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "no_unix_name"),
        ("jct-is-nobody", "unix_name_unknown"),
        ("root", "unix_name_of_the_system"),
        ("daemon", "unix_name_of_the_system"),
        ("nobody", "unix_name_of_the_system"),
    ],
)
def test_submission_for_invalid_user_is_refused_before_sending(
    apart: SlurmBench, name: str, why: str
) -> None:
    submission = apart.submission(person=Person("somebody", 7, name))
    with pytest.raises(Refused) as refused:
        apart.backend.submit(submission)
    assert refused.value.reason.params["why"] == why
    assert apart.backend.dry_run(submission) == [DryRunCheck("accepted", False, reason=refused.value.reason)]
    assert not apart.live()
    assert not any(apart.root.glob("job*"))


def test_account_of_slurm_user_or_without_shell_is_refused(a: User, b: User) -> None:
    person = Person("somebody", 7, a.pw_name)
    assert whom.resolve_account(person, b.pw_name) == a
    with pytest.raises(Refused):
        whom.resolve_account(person, a.pw_name)
    with unix_users.made(1, "/usr/sbin/nologin") as [without], pytest.raises(Refused):
        whom.resolve_account(replace(person, unix_name=without.pw_name))


def test_account_of_console_user_is_refused(a: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: a.pw_uid)
    with pytest.raises(Refused):
        whom.resolve_account(Person("somebody", 7, a.pw_name))


HOSTILE = """
run=$PWD/../..
ln -sf {secret} $run/logs/worker-1.output
rm -rf $run/steps; ln -s {elsewhere} $run/steps
mkfifo $run/end $run/hosts.new; mv $run/hosts.new $run/hosts
echo nonsense > $run/ends/worker-1
echo 1 nan itself > $run/ends/worker-9
mkfifo $run/../again; echo 1 > $run/../saved
echo up; exec sleep 600
"""


def test_hostile_job_folder_harms_no_other_files(apart: SlurmBench, a: User, b: User, tmp_path: Path) -> None:
    secret, elsewhere = tmp_path / "secret", tmp_path / "elsewhere"
    secret.write_text("not theirs")
    elsewhere.mkdir()
    (elsewhere / "worker-0").write_text("not theirs")
    harm = HOSTILE.format(secret=secret, elsewhere=elsewhere)
    two = apart.submission(
        role(f'[ "$PAI_TASK_INDEX" = 0 ] || exec sleep 600\n{harm}', replicas=2),
        person=Person("somebody", 7, a.pw_name),
    )
    hostile = apart.backend.submit(two)
    good = started(apart, b, "echo up; exec sleep 600")
    wait_for(lambda: log_of(apart.backend, hostile), 60)
    seen = apart.backend.observe([hostile, good])
    assert seen[good].state is State.RUNNING  # type: ignore[union-attr]
    assert "not theirs" not in repr(seen)
    slice_ = apart.backend.read_log(hostile, ReplicaRef("worker", 1), "", 100)
    assert (slice_.data, slice_.state is LogState.GONE) == (b"", False)
    apart.backend.stop(hostile, grace_s=0, signal="KILL")
    apart.backend.stop(good, grace_s=0, signal="KILL")
    wait_for(lambda: not apart.live(), 60)


def test_job_name_forged_as_queue_line_is_not_parsed(apart: SlurmBench, a: User, b: User) -> None:
    submission = of(apart, a, "true")
    forged = f"x|\n{a.pw_name}|99|N/A|PENDING|None|0|0|0|N/A||N/A|{submission.key}|"
    command = ("sbatch", "--parsable", "--hold", "--chdir=/", "--output=/dev/null", f"--job-name={forged}")
    number = apart.slurm.call(*as_(b), *command, "--wrap=true").strip()
    try:
        assert apart.backend.find([submission.key]) == {submission.key: []}
    finally:
        apart.slurm.call("scancel", number)
