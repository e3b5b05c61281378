"""POST convert: a file in another dialect, with every loss by path."""

from __future__ import annotations

import json

import pytest

from jobs import dialects
from jobs.models import Job
from tests.jobs.api.conftest import FIELDS, HELLO, Api, People, api, body_of, file, problem


def lossy() -> str:
    """A file with a retry, which AIHC has no key for, and something that only SCM knows."""
    return file(retryCount=3, tmp={"vgInfo": {}})


@pytest.mark.parametrize("who", ["owner", "member", "stranger", "admin"])
def test_convert_is_allowed_to_signed_in_users(people: People, who: str) -> None:
    told = body_of(api(getattr(people, who)).post("convert", {"file": file(), "to": "dlc"}))
    assert (told["dialect"], told["problems"]) == ("openpai-v1", [])
    assert json.loads(told["text"])["DisplayName"] == "hello"
    assert not Job.objects.exists()


def test_convert_is_refused_without_sign_in_or_scope(people: People) -> None:
    problem(Api().post("convert", {"file": file(), "to": "dlc"}))
    answer = api(people.owner, scopes=["submit"]).post("convert", {"file": file(), "to": "dlc"})
    assert (answer.status_code, problem(answer)["status"]) == (403, 403)


def test_convert_reports_losses_with_place_and_missing_capability(people: People) -> None:
    told = body_of(api(people.owner).post("convert", {"file": lossy(), "to": "aihc"}))
    losses = {(note["code"], note["pointer"]): note for note in told["notes"]}
    extra = losses["not_carried", "/tmp"]
    assert set(extra) == FIELDS | {"capability", "side"}
    assert (extra["side"], extra["line"]) == ("source", 1)
    framework = losses["added", "/framework"]
    assert (framework["side"], framework["capability"]) == ("target", "")
    assert told["text"].splitlines()[framework["line"] - 1][framework["column"] - 1 :].startswith('"')
    name = losses["approximated", "/roles/0/name"]
    assert (name["capability"], name["side"]) == ("custom role names", "source")


def test_convert_uses_the_given_dialect(people: People) -> None:
    asked = {"file": json.dumps(HELLO), "dialect": "aihc", "to": "dlc"}
    told = body_of(api(people.owner).post("convert", asked))
    assert (told["dialect"], told["text"], told["notes"]) == ("aihc", None, [])
    assert set(told["problems"][0]) == FIELDS


def test_convert_of_an_unknown_dialect_has_problems_and_no_text(people: People) -> None:
    told = body_of(api(people.owner).post("convert", {"file": "hello", "to": "dlc"}))
    assert (told["dialect"], told["text"]) == (None, None)
    assert told["problems"][0]["code"] == "unknown_dialect"


@pytest.mark.parametrize("wrong", [{}, {"to": "word"}, {"to": None}, {"to": ["dlc"]}])
def test_convert_rejects_an_unknown_target(people: People, wrong: dict[str, object]) -> None:
    answer = api(people.owner).post("convert", {"file": file(), **wrong})
    assert (answer.status_code, problem(answer)["problems"][0]["pointer"]) == (400, "/to")


@pytest.mark.parametrize("name", dialects.NAMES)
def test_convert_into_its_own_dialect_changes_nothing(people: People, name: str) -> None:
    text = body_of(api(people.owner).post("convert", {"file": file(), "to": name}))["text"]
    again = body_of(api(people.owner).post("convert", {"file": text, "dialect": name, "to": name}))
    if not again["problems"]:  # a dialect may need what the file did not say
        assert (again["text"], again["dialect"]) == (text, name)


def test_convert_returns_no_secret_values(people: People) -> None:
    asked = file(jobEnvs={"API_TOKEN": "hunter2-hunter2"})
    told = body_of(api(people.owner).post("convert", {"file": asked, "to": "dlc"}))
    assert "hunter2" not in json.dumps(told)
    assert "$SECRET:API_TOKEN" in told["text"]


def test_convert_over_one_mebibyte_is_refused_unread(people: People) -> None:
    answer = api(people.owner).post("convert", {"file": "x" * 1024 * 1024, "to": "dlc"})
    assert problem(answer)["status"] == 413
