"""Channels as people keep them: one's own, and those of workspaces for their admins; nothing secret shown."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django import Settings

from jobs.models import Channel, Delivery, NotificationRule
from jobs.notifications import Kind, channels, routing
from tests.jobs.web.conftest import People, browser, fragment, seen

pytestmark = pytest.mark.django_db

HOOK = {"url": "https://hooks.example.org/in/s3cr3t-path", "title": "My script", "language": ""}
OTHERS = ["member", "manager", "stranger", "admin"]


def added(people: People, who: str = "owner", **values: str) -> Channel:
    return channels.add(getattr(people, who), "webhook", {**HOOK, **values}, title="My script").channel


def rule(**values: Any) -> dict[str, Any]:
    usual = {"events": [Kind.FAILED], "about": "mine", "pace": "now", "hour": "8"}
    return {**usual, "wait_minutes": "60", "quota_percent": "90", **values}


# --- adding ----------------------------------------------------------------------------------------------


def test_webhook_channel_is_added_and_its_secret_shown_once(people: People) -> None:
    client = browser(people.owner)
    page = seen(client.post("/settings/notifications/new/webhook", HOOK, follow=True))
    channel = Channel.objects.get(kind="webhook")
    secret = channel.address()["secret"]
    assert secret in page
    assert "Copy the secret now" in page
    later = seen(client.get(f"/settings/notifications/{channel.pk}"))
    assert secret not in later
    assert "s3cr3t" not in later
    assert "hooks.example.org …path" in later
    assert "My script" in seen(client.get("/settings/notifications"))


@pytest.mark.parametrize(
    ("kind", "values", "shown"),
    [
        ("slack", {"url": "https://hooks.slack.com/services/T0/B0/abcd"}, "hooks.slack.com …abcd"),
        (
            "dingtalk",
            {"url": "https://oapi.dingtalk.com/robot/send?access_token=abcd", "secret": "SEC1"},
            "oapi.dingtalk.com …abcd",
        ),
        ("feishu", {"url": "https://open.feishu.cn/open-apis/bot/v2/hook/abcd"}, "open.feishu.cn …abcd"),
        (
            "wecom",
            {"url": "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=abcd"},
            "qyapi.weixin.qq.com …abcd",
        ),
        ("mattermost", {"url": "https://chat.example.org/hooks/abcd"}, "chat.example.org …abcd"),
        ("discord", {"url": "https://discord.com/api/webhooks/123/abcd"}, "discord.com …abcd"),
        ("telegram", {"token": "123456789:" + "A" * 35, "chat": "-100123"}, "-100123"),
    ],
)
def test_channel_of_each_kind_is_added(people: People, kind: str, values: dict[str, str], shown: str) -> None:
    response = browser(people.owner).post(f"/settings/notifications/new/{kind}", values)
    channel = Channel.objects.get(kind=kind)
    assert response["Location"] == f"/settings/notifications/{channel.pk}"
    assert (channel.shown, channel.person, channel.is_ready) == (shown, people.owner, True)
    assert channel.address() == values
    assert "abcd" not in channel.ciphertext


@pytest.mark.parametrize(
    ("kind", "values", "told"),
    [
        ("webhook", {"url": "http://hooks.example.org/"}, "Only https://"),
        ("webhook", {"url": "https://127.0.0.1/"}, "on the internal network"),
        ("webhook", {"url": "https://169.254.169.254/latest"}, "on the internal network"),
        ("webhook", {"url": "https://user:pass@example.org/"}, "user name or password"),
        ("webhook", {"url": "file:///etc/passwd"}, "must start with https://"),
        ("webhook", {"url": "https://example.org:22/"}, "Port 22"),
        ("webhook", {"url": ""}, "required"),
        ("slack", {"url": "https://evil.example/services/T/B/x"}, "hooks.slack.com"),
        ("slack", {"url": "https://hooks.slack.com.evil.example/services/T/B/x"}, "hooks.slack.com"),
        ("dingtalk", {"url": "https://oapi.dingtalk.com/robot/send"}, "oapi.dingtalk.com"),
        ("wecom", {"url": "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?x=y"}, "qyapi.weixin.qq.com"),
        ("telegram", {"token": "x", "chat": "1"}, "Enter a bot token such as"),
        ("telegram", {"token": "123456789:" + "A" * 35, "chat": "my chat"}, "-1001234567890"),
    ],
)
def test_channel_form_with_invalid_value_shows_error_beside_field(
    people: People, kind: str, values: dict[str, str], told: str
) -> None:
    response = browser(people.owner).post(f"/settings/notifications/new/{kind}", values)
    assert response.status_code == 422
    assert told in seen(response)
    assert not Channel.objects.exclude(kind="page").exists()


@pytest.mark.parametrize("kind", ["page", "exec", "file", "dbus", "syslog", "json", "windows", "x"])
def test_channel_of_unknown_kind_cannot_be_added(people: People, kind: str) -> None:
    client = browser(people.owner)
    assert client.get(f"/settings/notifications/new/{kind}").status_code == 404
    assert client.post(f"/settings/notifications/new/{kind}", HOOK).status_code == 404


def test_email_channel_is_offered_only_with_mail_configured(people: People, settings: Settings) -> None:
    client = browser(people.owner)
    settings.CONSOLE_MAIL = ""
    assert "new/email" not in seen(client.get("/settings/notifications"))
    assert client.get("/settings/notifications/new/email").status_code == 404
    settings.CONSOLE_MAIL = "smtp://mail.test"
    assert "new/email" in seen(client.get("/settings/notifications"))
    assert client.post("/settings/notifications/new/email", {"to": "nonsense"}).status_code == 422
    client.post("/settings/notifications/new/email", {"to": "alice@example.org"})
    channel = Channel.objects.get(kind="email")
    assert channel.is_ready is False
    assert "not confirmed" in seen(client.get(f"/settings/notifications/{channel.pk}"))


def test_channel_beyond_the_limit_is_refused(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "MOST", 1)
    added(people)
    response = browser(people.owner).post("/settings/notifications/new/webhook", HOOK)
    assert (response.status_code, Channel.objects.exclude(kind="page").count()) == (422, 1)


# --- whose they are --------------------------------------------------------------------------------------

POSTS = ["", "/test", "/switch", "/secret", "/remove", "/rules"]


@pytest.mark.parametrize("who", OTHERS)
def test_channel_of_another_person_is_not_found(people: People, who: str) -> None:
    channel = added(people)
    client, base = browser(getattr(people, who)), f"/settings/notifications/{channel.pk}"
    assert client.get(base).status_code == 404
    for path in POSTS:
        assert client.post(base + path, rule()).status_code == 404
    own = NotificationRule.objects.get(channel=channel)
    assert client.post(f"/settings/notifications/rules/{own.pk}/remove").status_code == 404
    assert "My script" not in seen(client.get("/settings/notifications"))
    assert Channel.objects.filter(pk=channel.pk, off="").exists()
    assert not Delivery.objects.exists()


@pytest.mark.parametrize(("who", "status"), [("owner", 403), ("member", 403), ("stranger", 404)])
def test_workspace_channels_are_refused_for_non_admins(people: People, who: str, status: int) -> None:
    base = f"/workspaces/{people.quota.workspace.slug}/notifications"
    channel = channels.add(people.manager, "webhook", HOOK, workspace=people.quota.workspace).channel
    client = browser(getattr(people, who))
    assert client.get(base).status_code == status
    assert client.post(f"{base}/new/webhook", HOOK).status_code == status
    assert client.get(f"/settings/notifications/{channel.pk}").status_code == 404
    for path in POSTS:
        assert client.post(f"/settings/notifications/{channel.pk}{path}", rule()).status_code == 404
    assert Channel.objects.filter(workspace__isnull=False).count() == 1


@pytest.mark.parametrize("who", ["manager", "admin"])
def test_workspace_channels_are_managed_by_workspace_admins(people: People, who: str) -> None:
    base = f"/workspaces/{people.quota.workspace.slug}/notifications"
    client = browser(getattr(people, who))
    assert "Notifications of Vision" in seen(client.get(base))
    client.post(f"{base}/new/webhook", HOOK)
    channel = Channel.objects.get(workspace=people.quota.workspace)
    [own] = channel.rules.all()
    assert (own.scope, own.workspace, channel.person) == ("workspace", people.quota.workspace, None)
    assert client.get(f"/settings/notifications/{channel.pk}").status_code == 200
    removed = client.post(f"/settings/notifications/{channel.pk}/remove")
    assert removed["Location"] == base


# --- rules -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("about", ["mine", "workspace", "quota"])
def test_rule_is_added_and_removed(people: People, about: str) -> None:
    channel = added(people)
    client = browser(people.owner)
    of = {"workspace": f"workspace:{people.quota.workspace_id}", "quota": f"quota:{people.quota.pk}"}
    asked = rule(about=of.get(about, about), pace="daily", hour="7", log_lines="on", wait_minutes="240")
    client.post(f"/settings/notifications/{channel.pk}/rules", asked)
    made = channel.rules.get(pace="daily")
    assert (made.scope, made.hour, made.log_lines, made.wait_minutes) == (about, 7, True, 240)
    assert made.events == [Kind.FAILED]
    assert "07:00" in seen(client.get(f"/settings/notifications/{channel.pk}"))
    client.post(f"/settings/notifications/rules/{made.pk}/remove")
    assert channel.rules.count() == 1


@pytest.mark.parametrize(
    "wrong",
    [{"events": ["nonsense"]}, {"pace": "x"}, {"hour": "24"}, {"wait_minutes": "1"}, {"quota_percent": "0"}],
)
def test_rule_with_invalid_values_is_refused(people: People, wrong: dict[str, Any]) -> None:
    channel = added(people)
    response = browser(people.owner).post(f"/settings/notifications/{channel.pk}/rules", rule(**wrong))
    assert (response.status_code, channel.rules.count()) == (422, 1)


def test_rule_about_inaccessible_workspace_or_quota_is_refused(people: People) -> None:
    channel = added(people, "stranger")
    client = browser(people.stranger)
    for about in (f"workspace:{people.quota.workspace_id}", f"quota:{people.quota.pk}"):
        response = client.post(f"/settings/notifications/{channel.pk}/rules", rule(about=about))
        assert response.status_code == 422


def test_workspace_channel_rule_about_own_jobs_is_refused(people: People) -> None:
    channel = channels.add(people.manager, "webhook", HOOK, workspace=people.quota.workspace).channel
    client = browser(people.manager)
    assert client.post(f"/settings/notifications/{channel.pk}/rules", rule(about="mine")).status_code == 422


# --- what one does with a channel ------------------------------------------------------------------------


def test_channel_test_page_polls_until_the_message_has_arrived(people: People) -> None:
    channel = added(people)
    client, address = browser(people.owner), f"/settings/notifications/{channel.pk}"
    assert client.post(f"{address}/test")["Location"] == address
    part = seen(client.get(address, headers=fragment("deliveries")))
    assert 'hx-trigger="every 2s"' in part
    assert "waiting" in part
    assert "<main" not in part
    Delivery.objects.update(state="failed", error="address", detail="10.0.0.1", code=None)
    part = seen(client.get(address, headers=fragment("deliveries")))
    assert "hx-trigger" not in part
    assert "resolves to 10.0.0.1 on the internal network" in part
    again = client.post(f"{address}/test", follow=True)
    assert "A test was just sent." in seen(again)


def test_failed_delivery_is_sent_again(people: People) -> None:
    channel = added(people)
    delivery = Delivery.objects.create(channel=channel, state="failed", error="rejected", attempts=3)
    client = browser(people.owner)
    address = f"/settings/notifications/sent/{delivery.public_id}/again"
    assert client.post(address)["Location"] == f"/settings/notifications/{channel.pk}"
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == ("waiting", 0)
    for who in OTHERS:
        assert browser(getattr(people, who)).post(address).status_code == 404


def test_channel_is_turned_off_and_on(people: People) -> None:
    channel = added(people)
    client, address = browser(people.owner), f"/settings/notifications/{channel.pk}/switch"
    client.post(address, {"on": "0"})
    assert Channel.objects.get(pk=channel.pk).off == Channel.Off.PERSON
    client.post(address, {"on": "1"})
    assert Channel.objects.get(pk=channel.pk).off == ""


def test_channel_secret_is_replaced_and_the_new_one_shown_once(people: People) -> None:
    channel = added(people)
    client, address = browser(people.owner), f"/settings/notifications/{channel.pk}"
    page = seen(client.post(f"{address}/secret", follow=True))
    new = Channel.objects.get(pk=channel.pk).address()["secret"]
    assert new in page
    assert new not in seen(client.get(address))


def test_channel_stores_quiet_hours_and_name(people: People) -> None:
    channel = added(people)
    client, address = browser(people.owner), f"/settings/notifications/{channel.pk}"
    client.post(address, {"title": "Night owl", "quiet_from": "22", "quiet_until": "7"})
    channel.refresh_from_db()
    assert (channel.title, channel.quiet_from, channel.quiet_until) == ("Night owl", 22, 7)
    assert client.post(address, {"title": "x", "quiet_from": "25"}).status_code == 422
    client.post(address, {"title": "x", "quiet_from": "", "quiet_until": ""})
    channel.refresh_from_db()
    assert channel.quiet_from is None


def test_console_notification_settings_store_selected_events(people: People) -> None:
    client = browser(people.owner)
    assert client.get("/settings/notifications").status_code == 200
    asked = {"events": [Kind.LOST], "wait_minutes": "15", "quota_percent": "50"}
    assert client.post("/settings/notifications", asked)["Location"] == "/settings/notifications"
    own = routing.page_rule(people.owner)
    assert (own.events, own.wait_minutes, own.quota_percent) == ([Kind.LOST], 15, 50)
    assert client.post("/settings/notifications", asked | {"events": ["x"]}).status_code == 422
    assert client.post("/settings/notifications", asked | {"events": []}).status_code == 302


def test_notification_pages_require_sign_in(people: People) -> None:
    channel = added(people)
    for path in ("/settings/notifications", "/notices/", f"/settings/notifications/{channel.pk}"):
        assert browser().get(path)["Location"].startswith("/sign-in")
