"""My secrets: saved, listed by name, replaced, removed, and never shown."""

from __future__ import annotations

from jobs.models import PersonalSecret
from tests.jobs.web.conftest import People, browser, people, seen
from tests.jobs.web.test_new import HELLO

__all__ = ["people"]

VALUE = "canary-5d1f"


def test_secret_is_saved_and_listed_without_its_value(people: People) -> None:
    client = browser(people.owner)
    sent = {"name": "HF_TOKEN", "value": f"{VALUE}\r\nsecond line"}
    assert client.post("/settings/secrets", sent)["Location"] == "/settings/secrets"
    assert PersonalSecret.objects.get(owner=people.owner).reveal() == f"{VALUE}\nsecond line"
    page = seen(client.get("/settings/secrets"))
    assert "$SECRET:HF_TOKEN" in page
    assert VALUE not in page


def test_invalid_secret_is_refused_with_an_error_at_its_field(people: People) -> None:
    response = browser(people.owner).post("/settings/secrets", {"name": "1 bad", "value": ""})
    assert response.status_code == 422
    assert "Letters, digits and _ only" in seen(response)
    assert not PersonalSecret.objects.exists()


def test_secrets_of_a_user_are_hidden_from_all_others(people: People) -> None:
    secret = PersonalSecret(owner=people.owner, name="HF_TOKEN")
    secret.encrypt(VALUE)
    secret.save()
    for user in (people.member, people.manager, people.stranger, people.admin):
        client = browser(user)
        assert "$SECRET:HF_TOKEN" not in seen(client.get("/settings/secrets"))
        assert client.post(f"/settings/secrets/{secret.pk}/remove").status_code == 404
    assert browser(people.owner).post(f"/settings/secrets/{secret.pk}/remove").status_code == 302
    assert not PersonalSecret.objects.exists()


def test_job_with_a_missing_secret_shows_line_and_remedy(people: People) -> None:
    text = HELLO.replace('"jobEnvs": {', '"jobEnvs": {"HF_TOKEN": "$SECRET:HF_TOKEN"')
    [problem] = browser(people.owner).post("/jobs/check", {"text": text}).json()["problems"]
    assert problem["message"].startswith("$SECRET:HF_TOKEN has no value. Save a secret named HF_TOKEN")
    assert text.split("\n")[problem["line"] - 1].count("$SECRET:HF_TOKEN") == 1
