"""POST /jobs/{id}/ssh-access: a key that opens one job."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import LazySettings
from django.http import HttpResponse

from jobs.access import sshhost, sshkeys
from jobs.access.terminal_gateway.ssh import find_key_holder
from jobs.models import Job, SshKey
from jobs.states import State
from tests.factories import make_job
from tests.jobs.api.conftest import Api, People, api, body_of, problem


@pytest.fixture(autouse=True)
def _gateway(settings: LazySettings, tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    settings.CONSOLE_HOME, settings.CONSOLE_SSH_PORT = tmp_path, 2222
    settings.CONSOLE_SSH_HOST = "jobs.example.org"
    sshhost.ensure(tmp_path)


@pytest.fixture
def key() -> str:
    public = Ed25519PrivateKey.generate().public_key()
    return public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def ask(caller: Api, job: Job, key: str, **body: object) -> HttpResponse:
    return caller.post(f"jobs/{job.public_id}/ssh-access", {"public_key": key, **body})


def test_ssh_access_lets_owners_key_into_this_job_alone(
    people: People, job: Job, key: str, settings: LazySettings
) -> None:
    told = body_of(ask(api(people.owner, {"exec"}), job, key))
    assert (told["host"], told["port"]) == ("jobs.example.org", 2222)
    assert told["host_key"] == sshhost.public_key(settings.CONSOLE_HOME)
    fingerprint = sshkeys.read(key).fingerprint
    holder = find_key_holder(told["login"], fingerprint)
    assert (holder and holder.user, holder and holder.replica.attempt.job) == (people.owner, job)
    other = make_job(State.RUNNING, owner=people.owner, quota=people.quota)
    assert find_key_holder(other.public_id, fingerprint) is None


def test_ssh_access_with_same_key_again_adds_nothing(people: People, job: Job, key: str) -> None:
    answers = [body_of(ask(api(people.owner), job, key)) for _ in range(2)]
    assert (answers[0] == answers[1], SshKey.objects.count()) == (True, 1)


def test_ssh_access_removes_keys_of_ended_jobs(people: People, job: Job, key: str) -> None:
    ended = make_job(State.FAILED, owner=people.owner, quota=people.quota)
    sshkeys.make(people.owner, ended)
    body_of(ask(api(people.owner), job, key))
    assert list(SshKey.objects.values_list("job", flat=True)) == [job.pk]


@pytest.mark.parametrize(
    ("name", "status"), [("member", 403), ("stranger", 404), ("manager", 200), ("admin", 200)]
)
def test_ssh_access_is_given_to_whoever_may_enter(
    people: People, job: Job, key: str, name: str, status: int
) -> None:
    assert ask(api(getattr(people, name)), job, key).status_code == status
    assert SshKey.objects.count() == (1 if status == 200 else 0)


def test_ssh_access_needs_the_exec_scope(people: People, job: Job, key: str) -> None:
    assert ask(api(people.owner, {"read", "submit", "stop"}), job, key).status_code == 403


def test_ssh_access_names_what_is_wrong_with_a_key(people: People, job: Job) -> None:
    (found,) = problem(ask(api(people.owner), job, "no key"))["problems"]
    assert (found["pointer"], found["code"]) == ("/public_key", "unknown")


def test_ssh_access_to_absent_or_waiting_replica_is_refused(people: People, job: Job, key: str) -> None:
    caller = api(people.owner)
    assert ask(caller, job, key, role="none").status_code == 404
    waiting = make_job(State.QUEUED, owner=people.owner, quota=people.quota)
    assert problem(ask(caller, waiting, key))["code"] == "not_running"


def test_ssh_access_without_gateway_says_so(
    people: People, job: Job, key: str, settings: LazySettings
) -> None:
    settings.CONSOLE_SSH_PORT = 0
    assert problem(ask(api(people.owner), job, key))["code"] == "no_ssh"
