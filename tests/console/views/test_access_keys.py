"""Access keys on the pages: a person's own under Settings, a service account's under its workspace."""

from __future__ import annotations

import logging

import pytest
from django.test import Client
from django.utils import timezone

from quotas.accounts import access_keys
from quotas.models import AccessKey, AuditEntry, ServiceAccount
from tests.confirmed import confirm
from tests.factories import make_user
from tests.jobs.web.conftest import People, browser, seen

pytestmark = pytest.mark.django_db

HERE = "/settings/access-keys"
MEMBERS = "/workspaces/vision/members"
SERVICES = "/workspaces/vision/services"
KEY = {"name": "laptop", "scopes": ["read", "submit"], "days": "30"}


def new_key(client: Client, **changes: object) -> tuple[str, str]:
    """Create a key on the page; return its id and its secret."""
    shown = client.post(HERE, KEY | changes, follow=True).context["made_key"]
    return shown.key_id, shown.secret


def test_new_access_key_is_shown_once_with_lines_for_each_client() -> None:
    user = make_user("alice")
    client = confirm(browser(user))
    assert client.post(HERE, KEY).headers["Location"] == HERE
    waiting = str(dict(client.session))
    page = client.get(HERE)
    shown = page.context["made_key"]
    assert shown.secret not in waiting, "at rest it is encrypted"
    assert shown.secret not in repr(shown)
    found = access_keys.find(shown.key_id)
    assert found is not None
    assert (found.user, found.scopes, found.reveal()) == (user, ["read", "submit"], shown.secret)
    lines = {snippet.title: snippet.text for snippet in shown.snippets}
    assert f"export ALIBABA_CLOUD_ACCESS_KEY_SECRET={shown.secret}" in lines["Alibaba Cloud SDK"]
    assert "endpoint='testserver', protocol='http'" in lines["Alibaba Cloud SDK"]
    assert lines["dlc"].startswith("pipx install http://testserver/client/job_console_client-")
    assert f"--access_id {shown.key_id}" in lines["dlc"]
    assert "endpoint='http://testserver'" in lines["Baidu AI Cloud SDK"]
    later = seen(client.get(HERE))
    assert shown.key_id in later
    assert shown.secret not in later


def test_access_key_secrets_are_on_no_other_page_and_in_no_log_or_audit_entry(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    client = confirm(browser(make_user("root", admin=True)))
    key_id, secret = new_key(client)
    row = AccessKey.objects.get()
    pages = ("/audit/", "/admin/quotas/accesskey/", f"/admin/quotas/accesskey/{row.pk}/change/", HERE)
    texts = [seen(client.get(page)) for page in pages]
    assert key_id in texts[1]
    assert not any(secret in text or row.ciphertext in text for text in texts)
    assert secret not in caplog.text
    assert secret not in str(list(AuditEntry.objects.values()))


def test_access_key_without_expiry_works_until_revoked() -> None:
    client = confirm(browser(make_user("alice")))
    key_id, _secret = new_key(client, days="0")
    row = AccessKey.objects.get()
    assert row.expires_at is None
    client.post(f"{HERE}/{row.pk}/revoke")
    assert access_keys.find(key_id) is None
    assert key_id not in seen(client.get(HERE))
    assert "No access keys" in seen(client.get(HERE))


def test_rotated_access_key_is_shown_and_the_old_one_expires_in_a_day() -> None:
    client = confirm(browser(make_user("alice")))
    key_id, secret = new_key(client, days="0")
    old = AccessKey.objects.get()
    shown = client.post(f"{HERE}/{old.pk}/rotate", follow=True).context["made_key"]
    assert (shown.key_id, shown.secret) != (key_id, secret)
    old.refresh_from_db()
    assert old.expires_at is not None
    assert timezone.now() < old.expires_at <= timezone.now() + access_keys.GRACE


def test_expired_access_key_is_listed_without_rotation() -> None:
    client = confirm(browser(make_user("alice")))
    new_key(client)
    AccessKey.objects.update(expires_at=timezone.now())
    row = AccessKey.objects.get()
    page = seen(client.get(HERE))
    assert f"{HERE}/{row.pk}/revoke" in page
    assert f"{HERE}/{row.pk}/rotate" not in page
    assert client.post(f"{HERE}/{row.pk}/rotate").status_code == 404


@pytest.mark.parametrize(
    "wrong", [{"name": ""}, {"scopes": []}, {"scopes": ["root"]}, {"days": "5"}, {"days": "never"}]
)
def test_refused_access_key_form_keeps_typed_values(wrong: dict[str, object]) -> None:
    response = confirm(browser(make_user("alice"))).post(HERE, KEY | wrong)
    assert response.status_code == 422
    assert not AccessKey.objects.exists()
    assert ('value="laptop"' in seen(response)) is ("name" not in wrong)


def test_access_key_of_another_user_is_hidden_and_cannot_be_changed() -> None:
    key_id, _secret = new_key(confirm(browser(make_user("alice"))))
    row = AccessKey.objects.get()
    for other in (make_user("bob"), make_user("root", admin=True)):
        client = confirm(browser(other))
        assert key_id not in seen(client.get(HERE))
        assert client.post(f"{HERE}/{row.pk}/revoke").status_code == 404
        assert client.post(f"{HERE}/{row.pk}/rotate").status_code == 404
    assert access_keys.find(key_id) is not None
    assert AccessKey.objects.count() == 1


def test_access_keys_without_sign_in_redirect_to_sign_in() -> None:
    assert browser().post(HERE, KEY).status_code == 302
    assert not AccessKey.objects.exists()


def test_access_key_rotation_without_confirmation_is_refused() -> None:
    user = make_user("alice")
    row = access_keys.issue(user, scopes=["read"]).row
    asked = browser(user).post(f"{HERE}/{row.pk}/rotate")
    assert asked["Location"].startswith("/sign-in/again")
    assert AccessKey.objects.count() == 1


def test_access_keys_are_listed_with_few_queries(django_assert_max_num_queries: object) -> None:
    user = make_user("alice")
    client = browser(user)
    for number in range(12):
        access_keys.issue(user, name=f"key {number}", scopes=["read"])
    client.get(HERE)
    with django_assert_max_num_queries(12):  # type: ignore[operator]  # pytest-django's own fixture
        assert "key 11" in seen(client.get(HERE))


# --- Service accounts -------------------------------------------------------------------------------------


def service(people: People) -> ServiceAccount:
    """Create a service account of the workspace."""
    data = {"username": "nightly", "role": "developer", "contact": "Carol"}
    browser(people.manager).post(SERVICES, data)
    return ServiceAccount.objects.get()


def test_service_account_key_is_created_rotated_and_revoked_by_a_manager(people: People) -> None:
    account, client = service(people), confirm(browser(people.manager))
    address = f"{SERVICES}/{account.pk}/keys"
    assert client.post(address, {"scopes": ["admin"], "days": "0"}).status_code == 422
    shown = client.post(address, {"scopes": ["read"], "days": "0"}, follow=True).context["made_key"]
    row = access_keys.find(shown.key_id)
    assert row is not None
    assert (row.user, row.reveal()) == (account.user, shown.secret)
    page = seen(client.get(MEMBERS))
    assert shown.key_id in page
    assert shown.secret not in page
    rotated = client.post(f"{address}/{row.pk}/rotate", follow=True).context["made_key"]
    assert access_keys.find(shown.key_id) is not None
    client.post(f"{SERVICES}/{account.pk}", {"do": "disable"})
    assert access_keys.find(rotated.key_id) is None
    client.post(f"{SERVICES}/{account.pk}", {"do": "enable"})
    client.post(f"{address}/{row.pk}/revoke")
    assert access_keys.find(shown.key_id) is None
    assert access_keys.find(rotated.key_id) is not None


@pytest.mark.parametrize("path", ["keys", "keys/{key}/rotate", "keys/{key}/revoke"])
def test_service_account_keys_refuse_other_users(people: People, path: str) -> None:
    account = service(people)
    row = access_keys.issue(account.user, scopes=["read"]).row
    address = f"{SERVICES}/{account.pk}/{path.format(key=row.pk)}"
    data = {"scopes": ["read"], "days": "30"}
    assert confirm(browser(people.owner)).post(address, data).status_code == 403
    assert confirm(browser(people.stranger)).post(address, data).status_code == 404
    assert Client().post(address, data).status_code == 302
    assert list(AccessKey.objects.filter(revoked_at=None, expires_at=None)) == [row]


@pytest.mark.parametrize("path", ["keys", "keys/{key}/rotate"])
def test_service_account_key_without_confirmation_is_refused(people: People, path: str) -> None:
    account = service(people)
    row = access_keys.issue(account.user, scopes=["read"]).row
    address = f"{SERVICES}/{account.pk}/{path.format(key=row.pk)}"
    asked = browser(people.manager).post(address, {"scopes": ["read"], "days": "30"})
    assert asked["Location"].startswith("/sign-in/again")
    assert AccessKey.objects.count() == 1


def test_key_of_a_person_is_not_found_under_a_service_account(people: People) -> None:
    account, client = service(people), confirm(browser(people.manager))
    row = access_keys.issue(people.owner, scopes=["read"]).row
    for verb in ("rotate", "revoke"):
        assert client.post(f"{SERVICES}/{account.pk}/keys/{row.pk}/{verb}").status_code == 404
    assert access_keys.find(row.key_id) is not None
