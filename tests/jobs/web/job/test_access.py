"""The Connect tab and the settings' keys: exact commands, keys, and who is inside."""

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client
from django.urls import reverse

from jobs.access import sshhost
from jobs.logs import log_store
from jobs.models import AccessSession, Job, LogStream, SshKey
from jobs.states import State
from quotas.models import Cluster, Role
from tests import required
from tests.confirmed import confirm
from tests.factories import make_endpoint, make_job, make_membership, make_user, replica_of

pytestmark = pytest.mark.django_db
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0bPJ8UqQJ0x1m5m6JYtSx4cyUoXqf1yTtO8Qm4k0aN me@laptop"


@pytest.fixture
def job() -> Job:
    return make_job(State.RUNNING)


@pytest.fixture
def client(job: Job) -> Client:
    made = Client()
    made.force_login(job.owner)
    return made


def _page(client: Client, job: Job) -> str:
    return client.get(reverse("job", args=[job.public_id]), {"tab": "connect"}).content.decode()


def test_connect_tab_commands_name_replica_host_and_port(
    client: Client, job: Job, settings: LazySettings
) -> None:
    settings.CONSOLE_SSH_PORT = 2200
    client.post(reverse("settings_ssh_keys"), {"text": KEY})
    login = f"{job.public_id}.main-0@testserver"
    page = _page(client, job)
    for command in (
        f"ssh -p 2200 {login}",
        f"scp -P 2200 FILE {login}:",
        f"sftp -P 2200 {login}",
        f"rsync -av -e &#x27;ssh -p 2200&#x27; FOLDER/ {login}:FOLDER/",
    ):
        assert f'data-copy="{command}"' in page
    assert (
        f"Host {job.public_id}.main-0\n  HostName testserver\n  Port 2200\n  User {job.public_id}.main-0\n"
        in page
    )


def test_connect_tab_shows_host_key_fingerprint_seen_by_clients(
    client: Client, job: Job, tmp_path: Path
) -> None:
    required.skip_without("ssh-keygen", "openssh-client")
    (tmp_path / "keys").mkdir()
    path = sshhost.ensure(tmp_path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert sshhost.ensure(tmp_path) == path
    said = subprocess.run(["ssh-keygen", "-lf", str(path)], capture_output=True, text=True, check=True).stdout
    assert said.split()[1] == sshhost.fingerprint(tmp_path)


def test_job_key_is_downloaded_and_used_in_commands(client: Client, job: Job, tmp_path: Path) -> None:
    required.skip_without("ssh-keygen", "openssh-client")
    answer = client.post(reverse("job_key", args=[job.public_id]))
    assert answer["Content-Disposition"] == f'attachment; filename="job-{job.public_id}.key"'
    assert "no-store" in answer["Cache-Control"]
    private = tmp_path / "key"
    private.touch(mode=0o600)
    private.write_bytes(answer.content)
    said = subprocess.run(
        ["ssh-keygen", "-yf", str(private)], capture_output=True, text=True, check=True
    ).stdout
    row = SshKey.objects.get()
    assert row.text == " ".join(said.split()[:2])
    assert (row.user, row.job) == (job.owner, job)
    assert "PRIVATE" not in "".join(str(value) for value in vars(row).values())
    assert f"ssh -p 2222 -i job-{job.public_id}.key {job.public_id}.main-0@testserver" in _page(client, job)


def test_job_key_for_ended_job_is_not_created(client: Client, job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(state=State.FAILED)
    assert client.post(reverse("job_key", args=[job.public_id])).status_code == 302
    assert not SshKey.objects.exists()


def test_connect_tab_is_hidden_from_readers_without_access(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(visibility="PUBLIC")
    member = make_user()
    make_membership(member, job.workspace, Role.DEVELOPER)
    client = Client()
    client.force_login(member)
    page = _page(client, job)
    assert "Connect</a>" not in page
    assert "ssh -p" not in page


def test_connect_tab_shows_disabled_or_failed_ssh_gateway(
    client: Client, job: Job, settings: LazySettings
) -> None:
    settings.CONSOLE_SSH_PORT = 0
    assert "SSH is disabled" in _page(client, job)
    settings.CONSOLE_SSH_PORT = 2222
    (settings.CONSOLE_HOME / "run").mkdir(exist_ok=True)
    sshhost.note_trouble(settings.CONSOLE_HOME, "Address already in use")
    assert "Address already in use" in _page(client, job)
    sshhost.note_trouble(settings.CONSOLE_HOME, "")
    assert "SSH is unavailable" not in _page(client, job)


def test_access_session_is_listed_and_can_be_ended(client: Client, job: Job) -> None:
    entry = AccessSession.objects.create(
        user=job.owner, replica=replica_of(job), kind="ssh", address="192.0.2.7"
    )
    assert "192.0.2.7" in _page(client, job)
    client.post(reverse("entry_end", args=[entry.pk]))
    entry.refresh_from_db()
    assert entry.end_asked_by == job.owner
    AccessSession.objects.filter(pk=entry.pk).update(seen_at="2020-01-01T00:00Z")
    assert "192.0.2.7" not in _page(client, job)


def test_access_session_can_be_ended_by_admin(job: Job) -> None:
    entry = AccessSession.objects.create(user=job.owner, replica=replica_of(job), kind="ssh")
    root = make_user("root", admin=True)
    client = Client()
    client.force_login(root)
    address = reverse("admin:jobs_accesssession_changelist")
    client.post(address, {"action": "end", "_selected_action": [entry.pk]})
    entry.refresh_from_db()
    assert entry.end_asked_by == root


def test_ssh_key_is_added_listed_and_removed(client: Client, job: Job) -> None:
    confirm(client)
    assert client.post(reverse("settings_ssh_keys"), {"text": KEY}).status_code == 302
    page = client.get(reverse("settings_ssh_keys")).content.decode()
    key = SshKey.objects.get()
    assert key.fingerprint in page
    assert "me@laptop" in page
    assert client.post(reverse("ssh_key_remove", args=[key.pk])).status_code == 302
    assert not SshKey.objects.exists()


def test_ssh_key_invalid_is_refused_and_input_stays(client: Client) -> None:
    confirm(client)
    answer = client.post(reverse("settings_ssh_keys"), {"text": "ssh-dss AAAA me", "title": "old"})
    assert answer.status_code == 422
    page = answer.content.decode()
    assert "DSA keys are no longer secure" in page
    assert "ssh-dss AAAA me" in page


def test_ssh_config_lines_are_valid_for_openssh(client: Client, job: Job, tmp_path: Path) -> None:
    required.skip_without("ssh", "openssh-client")
    page = _page(client, job)
    lines = page.partition('id="ssh-config">')[2].partition("</pre>")[0]
    (tmp_path / "config").write_text(lines)
    name = f"{job.public_id}.main-0"
    said = subprocess.run(
        shlex.split(f"ssh -F {tmp_path}/config -G {name}"), capture_output=True, text=True, check=True
    ).stdout
    assert "hostname testserver\n" in said
    assert "port 2222\n" in said
    assert f"user {name}\n" in said


# --- what it serves --------------------------------------------------------------------------------------


def test_connect_tab_lists_endpoint_with_client_commands(client: Client, job: Job) -> None:
    endpoint = make_endpoint(replica_of(job), port=8888, path="/lab", host="192.0.2.9")
    page = _page(client, job)
    login = f"{job.public_id}.main-0@testserver"
    for copied in (
        f"http://testserver/endpoints/{endpoint.slug}/open",
        f"ssh -p 2222 -N -L 8888:localhost:8888 {login}",
        "curl http://localhost:8888/lab",
        f"ssh -p 2222 {login} tail -f FILE",
        f"scp -P 2222 {login}:FILE .",
    ):
        assert f'data-copy="{copied}"' in page
    assert f'href="/endpoints/{endpoint.slug}/open"' in page
    assert f"vscode://vscode-remote/ssh-remote+{job.public_id}.main-0/" in page
    assert f"/api/console/v1/jobs/{job.public_id}/stream?log=main/0" in page
    assert "192.0.2.9" not in page


def test_connect_tab_shows_network_address_when_allowed_by_admin(client: Client, job: Job) -> None:
    make_endpoint(replica_of(job), port=8888, host="192.0.2.9")
    Cluster.objects.filter(pk=job.cluster_id).update(shows_addresses=True)
    page = _page(client, job)
    assert 'data-copy="192.0.2.9:8888"' in page
    assert 'data-copy="curl http://192.0.2.9:8888/"' in page
    member = make_user()
    make_membership(member, job.workspace, Role.DEVELOPER)
    Job.objects.filter(pk=job.pk).update(visibility="PUBLIC")
    other = Client()
    other.force_login(member)
    assert "192.0.2.9" not in _page(other, job)


def test_connect_tab_explains_unready_endpoint_and_offers_found_port(client: Client, job: Job) -> None:
    lacking: dict[str, Any] = {"why": "other_port", "why_params": {"port": 8888, "other": 7860}}
    make_endpoint(replica_of(job), port=8888, ready=False, **lacking)
    found = make_endpoint(replica_of(job), label="7860", port=7860, source="found")
    page = _page(client, job)
    assert "No process is listening on port 8888, but the job is listening on port 7860" in page
    assert "Port 7860 is listening but was not requested" in page
    assert f'href="/endpoints/{found.slug}/open"' in page
    overview = client.get(reverse("job", args=[job.public_id])).content.decode()
    assert "port 8888" in overview
    assert found.slug not in overview


def test_connect_tab_shows_log_path_only_to_console_admins(client: Client, job: Job) -> None:
    LogStream.objects.filter(attempt__job=job).update(live_path=f"{job.public_id}/1/logs/main-0.output")
    assert "tail -F" not in _page(client, job)
    root = Client()
    root.force_login(make_user("root", admin=True))
    assert f"tail -F {log_store.jobs_root()}/{job.public_id}/1/logs/main-0.output" in _page(root, job)
