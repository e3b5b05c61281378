"""Logs of tasks and SSH keys, by addresses that work without a token for a while."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.core import signing

from jobs.access.terminal_gateway.ssh import find_key_holder
from jobs.api.vendors.openpai import logs, ssh, tickets
from jobs.logs import log_store
from jobs.models import Job, SshKey
from quotas.accounts import tokens
from quotas.models import AccessToken, Membership, Role
from tests.factories import replica_of
from tests.jobs.api.conftest import People, body_of
from tests.jobs.api.vendors.openpai.conftest import Pai, PaiOf, error_of
from tests.jobs.live.conftest import WrittenLog

pytestmark = pytest.mark.django_db

LOGS = "v2/jobs/olga~hello/attempts/0/taskRoles/{role}/taskIndex/{index}/attempts/{run}/logs"
SSH = "v1/user/olga/jobs/hello/ssh"
NO_LOG = ("NoTaskLogError", "Log of task is not found.")


@pytest.fixture
def written(job: Job) -> Iterator[WrittenLog]:
    log = WrittenLog(job)
    log.write("first\n" * 4000 + "last\n")
    yield log
    shutil.rmtree(log_store.jobs_root(), ignore_errors=True)


def logs_path(role: str = "main", index: object = 0, run: object = 0) -> str:
    return LOGS.format(role=role, index=index, run=run)


def address_of_log(client: Pai) -> str:
    found = body_of(client.get(logs_path(), **{"tail-mode": "true"}))
    assert [location["name"] for location in found["locations"]] == ["all", "stdout"]
    address: str = found["locations"][0]["uri"]
    assert client.token not in address
    return address.removeprefix("http://testserver")


# --- logs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tail-mode", "tailMode"])
def test_log_address_gives_end_of_log_without_token(
    people: People, job: Job, written: WrittenLog, pai: PaiOf, name: str
) -> None:
    found = body_of(pai(people.owner).get(logs_path(), **{name: "true"}))
    answer = pai().get(found["locations"][0]["uri"].removeprefix("http://testserver"))
    assert answer.status_code == 200
    assert answer.content.endswith(b"first\nlast\n")
    assert abs(len(answer.content) - logs.TAIL_BYTES) < len("first\n")  # it begins with a line
    assert answer.headers["Content-Type"].startswith("text/plain")


def test_log_address_ends_with_its_time(
    people: People, job: Job, written: WrittenLog, pai: PaiOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = address_of_log(pai(people.owner))
    monkeypatch.setattr(tickets, "LIFETIME", timedelta(seconds=-1))
    assert error_of(pai().get(address), 404) == NO_LOG


def test_log_address_ends_with_its_token(people: People, job: Job, written: WrittenLog, pai: PaiOf) -> None:
    address = address_of_log(pai(people.owner))
    tokens.revoke_all(people.owner)
    assert error_of(pai().get(address), 404) == NO_LOG


def test_log_address_ends_with_right_to_read(
    people: People, job: Job, written: WrittenLog, pai: PaiOf
) -> None:
    address = address_of_log(pai(people.owner))
    Membership.objects.filter(user=people.owner).delete()
    assert error_of(pai().get(address), 404)[0] == "NoJobError"


def test_log_address_that_is_changed_is_refused(
    people: People, job: Job, written: WrittenLog, pai: PaiOf
) -> None:
    address = address_of_log(pai(people.owner))
    token = AccessToken.objects.get().pk
    other = signing.dumps([token, [job.public_id, {"role": "main"}]], salt="other")
    key = tickets._salt(ssh.PURPOSE)
    mixed = signing.dumps([token, [job.public_id]], salt=key)
    for wrong in (address[:-1], f"{address}x", f"/rest-server/logs/{other}", f"/rest-server/logs/{mixed}"):
        assert error_of(pai().get(wrong), 404) == NO_LOG


@pytest.mark.parametrize("path", [logs_path("other"), logs_path(index=1), logs_path(run=1)])
def test_log_of_unknown_task_is_not_found(people: People, job: Job, pai: PaiOf, path: str) -> None:
    assert error_of(pai(people.owner).get(path), 404) == NO_LOG


@pytest.mark.parametrize("path", [logs_path(index="x"), logs_path(run="-1"), logs_path(index="9" * 20)])
def test_log_of_wrong_number_is_refused(people: People, job: Job, pai: PaiOf, path: str) -> None:
    assert error_of(pai(people.owner).get(path), 400)[0] == "InvalidParametersError"


def test_log_of_unknown_name_is_not_found(people: People, job: Job, pai: PaiOf) -> None:
    assert error_of(pai(people.owner).get(f"{logs_path()}/runtime.log"), 404) == NO_LOG


# --- SSH -------------------------------------------------------------------------------------------------


@pytest.fixture
def gateway(settings: LazySettings) -> None:
    settings.CONSOLE_SSH_PORT = 2222
    settings.CONSOLE_SSH_HOST = "ssh.example"


@pytest.mark.parametrize("path", [SSH, "v1/jobs/hello/ssh", "v2/jobs/olga~hello/ssh"])
def test_ssh_info_leads_to_gateway(people: People, job: Job, pai: PaiOf, gateway: None, path: str) -> None:
    body = body_of(pai(people.owner).get(path))
    login = f"{job.public_id}.main-0"
    assert body["containers"] == [{"id": login, "sshIp": f"{login}@ssh.example", "sshPort": "2222"}]
    assert body["keyPair"]["privateKeyFileName"] == "olga~hello.key"
    assert not SshKey.objects.exists()


def test_ssh_key_is_made_once_for_its_address(people: People, job: Job, pai: PaiOf, gateway: None) -> None:
    link = body_of(pai(people.owner).get(SSH))["keyPair"]["privateKeyDirectDownloadLink"]
    path = link.removeprefix("http://testserver")
    answer = pai().get(path)
    assert answer.content.startswith(b"-----BEGIN OPENSSH PRIVATE KEY-----")
    assert answer.headers["Cache-Control"] == "no-store"
    key = SshKey.objects.get(job=job, user=people.owner)
    assert error_of(pai().get(path), 404)[0] == "NoJobSshInfoError"
    assert SshKey.objects.get().pk == key.pk
    holder = find_key_holder(f"root@{job.public_id}.main-0", key.fingerprint)
    assert holder is not None
    assert holder.replica == replica_of(job)
    assert find_key_holder(f"admin@{job.public_id}.main-0", key.fingerprint) is None


def test_ssh_key_ends_with_token(people: People, job: Job, pai: PaiOf, gateway: None) -> None:
    link = body_of(pai(people.owner).get(SSH))["keyPair"]["privateKeyDirectDownloadLink"]
    tokens.revoke_all(people.owner)
    assert error_of(pai().get(link.removeprefix("http://testserver")), 404)[0] == "NoJobSshInfoError"
    assert not SshKey.objects.exists()


def test_ssh_info_needs_scope_and_right(people: People, job: Job, pai: PaiOf, gateway: None) -> None:
    assert error_of(pai(people.owner, ["read"]).get(SSH), 403)[0] == "ForbiddenUserError"
    assert error_of(pai(people.member).get(SSH), 403)[0] == "ForbiddenUserError"
    assert error_of(pai(people.manager).get(SSH), 403)[0] == "ForbiddenUserError"
    assert pai(people.manager, ["exec", "admin"]).get(SSH).status_code == 200
    assert error_of(pai(people.stranger).get(SSH), 404)[0] == "NoJobError"


def test_ssh_info_of_viewer_is_refused(people: People, job: Job, pai: PaiOf, gateway: None) -> None:
    Membership.objects.filter(user=people.owner).update(role=Role.VIEWER)
    assert error_of(pai(people.owner).get(SSH), 403)[0] == "ForbiddenUserError"


def test_ssh_info_without_gateway_or_running_task_is_not_found(
    people: People, job: Job, pai: PaiOf, settings: LazySettings
) -> None:
    settings.CONSOLE_SSH_PORT = 0
    missing = ("NoJobSshInfoError", "SSH info of job olga~hello is not found.")
    assert error_of(pai(people.owner).get(SSH), 404) == missing
    settings.CONSOLE_SSH_PORT = 2222
    replica = replica_of(job)
    replica.state = "WAITING"
    replica.save()
    assert error_of(pai(people.owner).get(SSH), 404) == missing
