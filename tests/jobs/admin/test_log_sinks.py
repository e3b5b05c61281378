"""Log sinks in Django admin: admins alone, credentials in and never out, changes in the audit log."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.core.exceptions import ValidationError
from django.test import Client
from django.utils import timezone

from jobs.models import LogSink
from jobs.models.log_sinks import check_labels
from quotas.models import AuditEntry, Workspace
from tests.factories import make_user, make_workspace

pytestmark = pytest.mark.django_db

LIST = "/admin/jobs/logsink/"


@pytest.fixture
def client() -> Client:
    made = Client()
    made.force_login(make_user(admin=True))
    return made


def sent(workspace: Workspace, **changes: str) -> dict[str, str]:
    """What a browser sends of the form."""
    return {
        "workspace": str(workspace.pk),
        "name": "loki",
        "url": "https://loki.example.org/loki/api/v1/push",
        "format": "loki",
        "auth": "bearer",
        "username": "",
        "labels": '{"site": "lab"}',
        "enabled": "on",
        "credential": "t0psecret",
        **changes,
    }


def problems(answer: Any) -> dict[str, list[str]]:
    return {} if answer.status_code == 302 else dict(answer.context["adminform"].form.errors)


def test_log_sink_credential_is_stored_encrypted_and_never_shown(client: Client) -> None:
    workspace = make_workspace()
    assert not problems(client.post(f"{LIST}add/", sent(workspace)))
    sink = LogSink.objects.get()
    page = f"{LIST}{sink.pk}/change/"
    assert sink.credential() == "t0psecret"
    assert "t0psecret" not in sink.ciphertext
    LogSink.objects.update(failures=3, error="trouble", detail="502 Bad Gateway", dropped_bytes=7)
    shown = client.get(page).content.decode()
    assert "t0psecret" not in shown
    assert sink.ciphertext not in shown
    assert "Server error: 502 Bad Gateway." in shown
    # The stored credential goes to no other server, and a worker's columns are not overwritten.
    moved = sent(workspace, url="https://evil.example.org/in", credential="")
    assert set(problems(client.post(page, moved))) == {"credential"}
    assert not problems(client.post(page, sent(workspace, credential="", name="logs")))
    sink.refresh_from_db()
    assert (sink.name, sink.credential(), sink.failures, sink.dropped_bytes) == ("logs", "t0psecret", 0, 7)
    assert not problems(client.post(page, sent(workspace, auth="none", credential="")))
    sink.refresh_from_db()
    assert sink.ciphertext == ""
    entries = list(AuditEntry.objects.filter(content_type__model="logsink").order_by("pk"))
    assert [entry.action for entry in entries] == ["create", "update", "update"]
    assert not any("t0psecret" in str(entry.changes) or "gAAAA" in str(entry.changes) for entry in entries)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"url": "http://loki.example.org/"}, "url"),
        ({"url": "https://169.254.169.254/latest"}, "url"),
        ({"credential": ""}, "credential"),
        ({"credential": "a\nb"}, "credential"),
        ({"auth": "basic", "username": "a:b"}, "username"),
        ({"labels": '{"job": "mine"}'}, "labels"),
    ],
)
def test_log_sink_form_refuses_what_cannot_work(client: Client, changes: dict[str, str], field: str) -> None:
    assert set(problems(client.post(f"{LIST}add/", sent(make_workspace(), **changes)))) == {field}


def test_log_sink_test_is_requested_as_a_row(client: Client) -> None:
    client.post(f"{LIST}add/", sent(make_workspace()))
    sink = LogSink.objects.get()
    client.post(LIST, {"action": "send_test", "_selected_action": [sink.pk]})
    sink.refresh_from_db()
    assert sink.test_requested_at is not None
    assert "Sending…" in client.get(f"{LIST}{sink.pk}/change/").content.decode()
    LogSink.objects.update(test_requested_at=None, tested_at=timezone.now(), test_error="timeout")
    assert "No response in time." in client.get(f"{LIST}{sink.pk}/change/").content.decode()


def test_log_sink_is_not_changed_by_staff() -> None:
    staff, workspace = make_user(is_staff=True), make_workspace()
    staff.user_permissions.set(Permission.objects.filter(content_type__model="logsink"))
    client = Client()
    client.force_login(staff)
    assert client.get(LIST).status_code == 200
    assert client.post(f"{LIST}add/", sent(workspace)).status_code == 403


@pytest.mark.parametrize(
    "labels", [[], {"a": 1}, {"a-b": ""}, {"_a": ""}, {"a": "x" * 201}, dict.fromkeys("abcdefg", "")]
)
def test_check_labels_refuses_what_loki_refuses(labels: object) -> None:
    with pytest.raises(ValidationError):
        check_labels(labels)
