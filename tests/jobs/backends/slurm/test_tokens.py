"""Jobs as their owners' own UNIX users by tokens: whom one is made for, and what goes without a helper.

What holds whichever way people are told apart is in `test_unix_users`.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jwt
import pytest

from jobs.backends.base import DryRunCheck, NotSubmitted, Observation, Person, Refused, Unreachable, Unseen
from jobs.backends.sessions import Ended, NoEntry
from jobs.backends.slurm.backend import SlurmBackend
from jobs.backends.slurm.client.rest import tokens
from jobs.backends.slurm.client.rest.controller import RestController
from jobs.backends.slurm.client.rest.tokens import NoToken
from jobs.backends.slurm.client.rest.user_actions import TokenActions
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.handles import SlurmJob
from jobs.backends.slurm.status import cleanup
from jobs.states import State
from tests import unix_users
from tests.jobs.backends import test_contract as contract
from tests.jobs.backends.apart import User, as_, by, by_tokens, does, minting, of, opened, started
from tests.jobs.backends.benches import log_of, wait_until_over
from tests.jobs.backends.beside import list_files, run
from tests.jobs.backends.slurm.test_faults import forgets, state_of
from tests.jobs.backends.slurm_bench import SlurmBench
from tests.slurm import Slurm
from tests.waiting import wait_for

pytestmark = pytest.mark.skipif(bool(unix_users.missing()), reason=unix_users.missing() or "there are some")

LATER_S = 86_400
LIFE_S = 600


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    tokens._tokens.clear()
    yield
    tokens._tokens.clear()


PROMISES = [
    contract.test_submit_twice_starts_job_once,
    contract.test_stop_repeated_ends_job_once_and_unknown_handle_is_ignored,
    contract.test_unknown_handle_is_gone,
    contract.test_find_of_unsubmitted_key_returns_nothing,
]


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__.removeprefix("test_"))
def test_token_backend_fulfills_every_backend_promise(
    by_jwt: SlurmBench, a: User, promise: Callable[[SlurmBench], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    as_theirs = partial(by_jwt.submission, person=Person("somebody", 7, a.pw_name))
    monkeypatch.setattr(by_jwt, "submission", as_theirs)
    promise(by_jwt)


# --- whom a token is made for ----------------------------------------------------------------------------


def made_for(bench: SlurmBench, user: User) -> dict[str, Any]:
    token = tokens.make_headers(bench.config, user.pw_name)["X-SLURM-USER-TOKEN"]
    options: Any = {"require": ["exp", "iat", "sun"]}
    return dict(jwt.decode(token, _key(bench), algorithms=["HS256"], options=options))


def _key(bench: SlurmBench) -> bytes:
    return (bench.slurm.base / "jwt.key").read_bytes()


def test_token_names_its_user_and_expires_soon(by_jwt: SlurmBench, a: User, b: User) -> None:
    told = made_for(by_jwt, a)
    assert told["sun"] == a.pw_name
    assert 0 < told["exp"] - time.time() <= LIFE_S
    assert made_for(by_jwt, a) == told
    assert made_for(by_jwt, b)["sun"] == b.pw_name


@pytest.mark.parametrize("name", ["root", "daemon", "nobody", "jct-is-nobody", "0", "1000", "-u"])
def test_token_for_name_without_person_is_refused(by_jwt: SlurmBench, name: str) -> None:
    with pytest.raises(NoToken, match="No token is made for"):
        tokens.make_headers(by_jwt.config, name)
    with pytest.raises(Refused):
        TokenActions(by_jwt.config, name).submit("x-job1-1", "#!/bin/sh\ntrue\n")


def test_token_for_slurm_user_or_console_user_is_refused(
    by_jwt: SlurmBench, a: User, b: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NoToken):
        tokens.make_headers(replace(by_jwt.config, slurm_user=a.pw_name), a.pw_name)
    monkeypatch.setattr(os, "geteuid", lambda: b.pw_uid)
    with pytest.raises(NoToken):
        tokens.make_headers(by_jwt.config, b.pw_name)


@pytest.mark.parametrize("user", ["root", "0"])
def test_console_token_for_privileged_user_is_refused(
    by_jwt: SlurmBench, a: User, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: a.pw_uid)
    with pytest.raises(NoToken, match="may do anything"):
        tokens.make_headers(replace(by_jwt.config, user=user))


def test_console_token_as_slurm_user_is_refused_for_other_users(by_jwt: SlurmBench, a: User) -> None:
    config = replace(by_jwt.config, user=a.pw_name, slurm_user=a.pw_name)
    with pytest.raises(NoToken, match="may do anything"):
        tokens.make_headers(config)


def _printing(bench: SlurmBench, script: str) -> SlurmConfig:
    program = bench.folder / "token"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return replace(bench.config, token_command=(str(program), "{user}"))


def test_token_command_must_print_valid_token_for_given_user(by_jwt: SlurmBench, a: User, b: User) -> None:
    config = _printing(by_jwt, 'exec scontrol token "username=$1" lifespan=600')
    assert RestController(config, a).is_answered()
    tokens._tokens.clear()
    for script, why in (
        (f"exec scontrol token username={b.pw_name} lifespan=600", "printed none for"),
        (f"echo SLURM_JWT={_signed(by_jwt, a, -60)}", "has expired"),
        ("echo nothing", "printed no token"),
        ("exit 1", "failed"),
    ):
        with pytest.raises(NoToken, match=why):
            tokens.make_headers(_printing(by_jwt, script), a.pw_name)


def _signed(bench: SlurmBench, user: User, life_s: int, key: bytes = b"") -> str:
    told = {"sun": user.pw_name, "exp": int(time.time()) + life_s}
    return jwt.encode(told, key or _key(bench), algorithm="HS256")


# --- what has to be there --------------------------------------------------------------------------------


def _unaccepted(bench: SlurmBench) -> str:
    return _signed(bench, pwd.getpwuid(os.geteuid()), 600, os.urandom(32))


MISSING: list[tuple[str, Callable[[SlurmBench], SlurmConfig]]] = [
    ("nothing that makes tokens", lambda bench: replace(bench.config, token_command=())),
    ("whose token is it", lambda bench: replace(bench.config, token_command=("scontrol", "token"))),
    (
        "not known as whom Slurm itself runs",
        lambda bench: replace(bench.config, programs=str(bench.folder)),
    ),
    ("does not accept the token", lambda bench: _printing(bench, f"echo {_unaccepted(bench)}")),
]


@pytest.mark.parametrize(("told", "without"), MISSING)
def test_missing_prerequisite_is_named(
    by_jwt: SlurmBench, told: str, without: Callable[[SlurmBench], SlurmConfig]
) -> None:
    with pytest.raises(Unreachable) as missing:
        SlurmBackend(without(by_jwt)).inventory()
    assert told in str(missing.value)
    assert by_jwt.backend.inventory().nodes


def test_folder_closed_to_users_is_named(by_jwt: SlurmBench) -> None:
    by_jwt.root.chmod(0o700)
    with pytest.raises(Unreachable, match="is closed to the users"):
        by_jwt.backend.inventory()


@pytest.mark.parametrize(
    "wrong",
    [
        {"way": "commands"},
        {"login": {"host": "h", "user": "u", "private_key": "k", "host_key": "ssh-ed25519 AAAA"}},
    ],
)
def test_jwt_identity_requires_slurmrestd(tmp_path: Path, wrong: dict[str, Any]) -> None:
    said = {"identity": "jwt", "way": "rest", "url": "http://slurm:6820", **wrong}
    with pytest.raises(ValueError, match=r"jwt_by_rest|no_keys"):
        SlurmConfig.from_settings(tmp_path, said)


# --- one person's trouble is theirs ----------------------------------------------------------------------


def test_rejected_token_of_one_user_spares_others(by_jwt: SlurmBench, a: User, b: User) -> None:
    script = 'cat "$0.$1" 2>/dev/null || exec scontrol token "username=$1" lifespan=600'
    config = _printing(by_jwt, script)
    backend = SlurmBackend(config)
    wrong = Path(f"{config.token_command[0]}.{a.pw_name}")
    theirs, others = (backend.submit(of(by_jwt, user, "id -u")) for user in (a, b))
    wrong.write_text(_signed(by_jwt, a, 600, os.urandom(32)))
    tokens._tokens.clear()
    with pytest.raises(Unreachable):
        backend.release([theirs, others])
    assert wait_until_over(backend, others).state is State.SUCCEEDED
    with pytest.raises(NotSubmitted) as not_sent:
        backend.submit(of(by_jwt, a, "true"))
    assert "does not accept the token" in str(not_sent.value.reason.params["detail"])
    with pytest.raises(Unreachable):
        backend.stop(theirs, grace_s=0, signal="KILL")
    wrong.write_text(_signed(by_jwt, a, -60))
    with pytest.raises(NotSubmitted) as not_sent:
        backend.submit(of(by_jwt, a, "true"))
    assert "has expired" in str(not_sent.value.reason.params["detail"])
    seen = backend.observe([theirs, others])[theirs]
    assert isinstance(seen, Observation)
    assert seen.state is State.PENDING
    wrong.unlink()
    (by_jwt.attempt(theirs) / "stop").unlink()
    backend.release([theirs])
    assert wait_until_over(backend, theirs).state is State.SUCCEEDED
    assert log_of(backend, theirs) == f"{a.pw_uid}\n"


def test_user_token_cannot_reach_job_of_another_user(by_jwt: SlurmBench, a: User, b: User) -> None:
    handle = started(by_jwt, a, "echo up; exec sleep 600")
    number = SlurmJob.of(handle).number
    acting = TokenActions(by_jwt.config, b.pw_name)
    with pytest.raises(Unreachable):
        acting.cancel([number])
    with pytest.raises(Unreachable):
        RestController(by_jwt.config, b).cancel([number])
    assert acting.jobs_of_name(SlurmJob.of(handle).key) == []
    assert state_of(by_jwt.backend, handle) is State.RUNNING


def test_user_job_from_elsewhere_is_left_alone(by_jwt: SlurmBench, a: User) -> None:
    command = ("sbatch", "--parsable", "--hold", "--chdir=/", "--output=/dev/null", "--wrap=true")
    number = by_jwt.slurm.call(*as_(a), *command).strip()
    try:
        TokenActions(by_jwt.config, a.pw_name).cancel([int(number)])
        assert number in by_jwt.slurm.call("squeue", "--noheader", "--format=%A")
    finally:
        by_jwt.slurm.call("scancel", number)


def test_user_unknown_to_slurm_is_refused(
    by_jwt: SlurmBench, a: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = pwd.getpwnam

    def here(name: str) -> User:
        """The console's machine has a user that Slurm's has not."""
        return pwd.struct_passwd((name, *a[1:])) if name == "jct-of-here" else known(name)

    monkeypatch.setattr(pwd, "getpwnam", here)
    person = replace(of(by_jwt, a, "true").person, unix_name="jct-of-here")
    with pytest.raises(Refused) as refused:
        by_jwt.backend.submit(replace(of(by_jwt, a, "true"), person=person))
    assert "does not know" in str(refused.value.reason.params["detail"])
    assert not by_jwt.live()


# --- what Slurm forgets and hides ------------------------------------------------------------------------


def test_forgotten_job_is_submitted_again_and_duplicate_cancelled(
    by_jwt: SlurmBench, a: User, tmp_path: Path
) -> None:
    backend = SlurmBackend(by_jwt.config)
    with forgets(by_jwt, tmp_path / "state"):
        handle = backend.submit(of(by_jwt, a, "id -u"))
    assert state_of(backend, handle) is State.PENDING
    where = f"--chdir={by_jwt.attempt(handle)}"
    command = ("sbatch", "--parsable", "--hold", where, "--output=/dev/null", "--wrap=true")
    copy = by_jwt.slurm.call(*as_(a), *command, f"--job-name={SlurmJob.of(handle).key}").strip()
    assert wait_until_over(backend, handle).state is State.SUCCEEDED
    assert log_of(backend, handle) == f"{a.pw_uid}\n"
    wait_for(lambda: backend.observe([handle]) and copy not in by_jwt.live(), 60)


@contextmanager
def hiding(slurm: Slurm) -> Iterator[None]:
    """Slurm tells nobody of others' jobs."""
    said = slurm.configuration.read_text()
    slurm.configuration.write_text(f"{said}PrivateData=jobs\n")
    slurm.call("scontrol", "reconfigure")
    try:
        yield
    finally:
        slurm.configuration.write_text(said)
        slurm.call("scontrol", "reconfigure")


def test_hidden_jobs_are_reported_as_unreachable(by_jwt: SlurmBench, slurm: Slurm, a: User, b: User) -> None:
    config = replace(by_jwt.config, user=b.pw_name)
    backend = SlurmBackend(config)
    with hiding(slurm):
        handle = backend.submit(of(by_jwt, a, "true"))
        with pytest.raises(Unreachable, match="PrivateData"):
            backend.release([handle])
        assert isinstance(backend.observe([handle])[handle], Unseen)
        assert len(by_jwt.live()) == 1
    backend.release([handle])
    assert wait_until_over(backend, handle).state is State.SUCCEEDED


# --- a console that is not root --------------------------------------------------------------------------


@pytest.fixture
def as_b(slurm: Slurm, b: User, open_folder: Path) -> Iterator[SlurmBench]:
    """A cluster of a console that runs as b, and is no user of Slurm's that may do more than others."""
    key = open_folder / "key"
    shutil.copy(slurm.base / "jwt.key", key)
    key.chmod(0o400)
    shutil.chown(key, b.pw_uid)
    command = minting(open_folder, key)
    with opened(
        open_folder, slurm, {**by_tokens(slurm), "user": b.pw_name, "token_command": command}
    ) as made:
        shutil.chown(made.root, b.pw_uid, b.pw_gid)
        yield made


def test_job_files_closed_to_console_are_removed_by_their_user(
    as_b: SlurmBench, a: User, b: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleanup, "SOON_S", 0)
    submission = of(as_b, a, "id -u; mkdir shut; touch shut/x; chmod 0 shut")

    def all_of_it() -> None:
        assert as_b.backend.inventory().nodes
        handle = as_b.backend.submit(submission)
        assert wait_until_over(as_b.backend, handle).state is State.SUCCEEDED
        assert log_of(as_b.backend, handle) == f"{a.pw_uid}\n"
        as_b.backend.forget(handle)
        assert as_b.attempt(handle).exists()
        assert as_b.backend.submit(submission) == handle

        def is_gone() -> bool:
            as_b.backend.inventory()
            return not as_b.attempt(handle).parent.exists()

        wait_for(is_gone, 120)
        assert list(cleanup.describe_leftovers(as_b.config)) == []

    by(b, all_of_it)


def test_unprivileged_console_opens_session_as_job_user(as_b: SlurmBench, a: User, b: User) -> None:
    submission = of(as_b, a, "echo up; exec sleep 600")

    def all_of_it() -> None:
        handle = as_b.backend.submit(submission)
        wait_for(lambda: log_of(as_b.backend, handle), 60)
        assert asyncio.run(run(as_b, handle, "id -u")) == (f"{a.pw_uid}\n", Ended(exit_code=0))

    by(b, all_of_it)


def test_unremovable_folder_is_reported_and_stops_nothing(
    as_b: SlurmBench, a: User, b: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission = of(as_b, a, "mkdir shut; touch shut/x; chmod 0 shut")

    def all_of_it() -> None:
        handle = as_b.backend.submit(submission)
        assert wait_until_over(as_b.backend, handle).state is State.SUCCEEDED
        without = SlurmBackend(replace(as_b.config, slurm_user=a.pw_name))
        without.forget(handle)
        without.forget(handle)
        assert without.inventory().nodes
        assert list(cleanup.describe_leftovers(as_b.config)) == []
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + LATER_S)
        for _ in range(cleanup.TRIES + 1):
            cleanup.retry(replace(as_b.config, slurm_user=a.pw_name))
        [told] = cleanup.describe_leftovers(as_b.config)
        assert str(as_b.attempt(handle)) in told

    by(b, all_of_it)


# --- what goes without a helper --------------------------------------------------------------------------


async def test_session_by_listener_runs_as_job_user_without_keys_of_others(
    by_jwt: SlurmBench, a: User, b: User
) -> None:
    handle = started(by_jwt, a, "echo kept > note; echo up; until [ -e go ]; do sleep 0.1; done")
    work = by_jwt.attempt(handle) / "run-1" / "work" / "worker-0"
    assert await run(by_jwt, handle, "id -u; pwd") == (f"{a.pw_uid}\n{work}\n", Ended(exit_code=0))
    for user, name, can in ((a, "door", True), (b, "door", False), (a, "door-key", False)):
        assert (does(user, "cat", str(by_jwt.attempt(handle) / name)).returncode == 0) is can
    for name in ("door", "door-key"):
        assert does(a, "rm", "-f", str(by_jwt.attempt(handle) / name)).returncode
    (work / "go").touch()
    assert wait_until_over(by_jwt.backend, handle).state is State.SUCCEEDED
    assert not list(by_jwt.attempt(handle).glob("door*"))
    assert "note" in await list_files(by_jwt, handle)
    secret = by_jwt.folder / "secret"
    secret.mkdir()
    (secret / "not-theirs").touch()
    work.rename(work.with_name("away"))
    work.symlink_to(secret)
    with pytest.raises(NoEntry):
        await list_files(by_jwt, handle)


def test_dry_run_with_token_reports_unable(by_jwt: SlurmBench, a: User) -> None:
    found = by_jwt.backend.dry_run(of(by_jwt, a, "true"))
    assert found == [DryRunCheck("unable", None), DryRunCheck("user", True, detail=a.pw_name)]
