"""What the editor asks while somebody writes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.test import Client

from jobs.dialects.document import Document
from jobs.submission import job_submission
from tests.jobs.api.conftest import FIELDS
from tests.jobs.web.conftest import People, browser
from tests.jobs.web.test_new import HELLO, JUPYTER

if TYPE_CHECKING:
    from django.test.client import _MonkeyPatchedWSGIResponse as Response


def check(client: Client, text: str, **fields: str) -> Any:
    return json.loads(client.post("/jobs/check", {"text": text, **fields}).content)


def apply_fix(client: Client, text: str, fix: object) -> Response:
    return client.post("/jobs/mend", {"text": text, "fix": json.dumps(fix)})


def test_editor_check_note_has_message_and_line(people: People) -> None:
    answer = check(browser(people.owner), HELLO)
    assert answer["dialect"] == "openpai-v1"
    assert answer["problems"] == []
    [storage] = [note for note in answer["notes"] if note["pointer"] == "/taskRoles/0/storageGB"]
    assert '"storageGB"' in HELLO.splitlines()[storage["line"] - 1]
    assert "storageGB" in storage["message"]


def test_editor_check_reports_all_problems_at_once(people: People) -> None:
    broken = HELLO.replace('"taskNumber": 1', '"taskNumber": true').replace('"nvidia-smi"', '""')
    answer = check(browser(people.owner), broken)
    assert {problem["pointer"] for problem in answer["problems"]} == {
        "/taskRoles/0/taskNumber",
        "/taskRoles/0/command",
    }
    assert set(answer["problems"][0]) == FIELDS


def test_editor_check_of_unrecognized_text_returns_problems(people: People) -> None:
    for text in ("", "hello", "\x00", "{" * 100_000):
        answer = check(browser(people.owner), text)
        assert answer["dialect"] is None
        assert answer["problems"]


def test_editor_check_with_unknown_dialect_is_bad_request(people: People) -> None:
    response = browser(people.owner).post("/jobs/check", {"text": HELLO, "dialect": "nonsense"})
    assert response.status_code == 400


def test_editor_fix_offered_by_check_can_be_applied(people: People) -> None:
    client = browser(people.owner)
    [fix] = [note["fix"] for note in check(client, JUPYTER)["notes"] if note["fix"]]
    fixed = json.loads(apply_fix(client, JUPYTER, fix).content)["text"]
    assert json.loads(fixed)["taskRoles"][0]["command"] == fix["value"]
    assert not [note for note in check(client, fixed)["notes"] if note["fix"]]


def test_editor_fix_invalid_is_refused(people: People) -> None:
    client = browser(people.owner)
    for fix in ("x", {}, {"pointer": "/a"}, None):
        assert apply_fix(client, HELLO, fix).status_code == 400
    assert apply_fix(client, "{", {"pointer": "/a", "value": 1}).status_code == 400


def test_editor_check_without_sign_in_is_unauthorized(db: None) -> None:
    response = browser().post("/jobs/check", {"text": HELLO}, headers={"Accept": "application/json"})
    assert response.status_code == 401


def test_editor_check_without_csrf_token_is_refused(people: People) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(people.owner)
    assert client.post("/jobs/check", {"text": HELLO}).status_code == 403


def test_editor_check_shows_detected_dialect_and_why(people: People) -> None:
    answer = check(browser(people.owner), HELLO)
    assert answer["label"] == "OpenPAI / SCM JSON (protocol v1)"
    assert answer["why"] == "has jobName and taskRoles"
    assert (answer["syntax"], answer["candidates"]) == ("json", [])


def test_editor_check_of_ambiguous_text_guesses_no_dialect(people: People) -> None:
    both = json.dumps({**json.loads(HELLO), "JobType": "PyTorchJob", "JobSpecs": []})
    answer = check(browser(people.owner), both)
    assert answer["dialect"] is None
    assert [problem["code"] for problem in answer["problems"]] == ["ambiguous_dialect"]
    assert {each["name"] for each in answer["candidates"]} == {"openpai-v1", "dlc"}
    assert all(each["why"] and each["label"] for each in answer["candidates"])
    chosen = check(browser(people.owner), both, dialect="openpai-v1")
    assert (chosen["dialect"], chosen["problems"]) == ("openpai-v1", [])


def test_editor_applies_all_fixes_at_once(people: People) -> None:
    client = browser(people.owner)
    broken = HELLO.replace('"jobName": "', '"jobName": "a b ').replace('"cpuNumber": 4', '"cpuNumber": "4.5"')
    fixed = client.post("/jobs/mend", {"text": broken, "fix": "all"})
    answer = check(client, json.loads(fixed.content)["text"])
    assert [each for each in answer["problems"] + answer["notes"] if each["fix"]] == []
    unreadable = client.post("/jobs/mend", {"text": "{", "fix": "all"})
    assert json.loads(unreadable.content)["text"] == "{"


def test_misspelt_key_is_renamed_by_its_button_and_not_by_submitting(people: People) -> None:
    client = browser(people.owner)
    text = HELLO.replace("minSucceededTaskCount", "minSuceededTaskCount", 1)
    [fix] = [note["fix"] for note in check(client, text)["notes"] if note["fix"]]
    assert fix["key"] == "minSucceededTaskCount"
    fixed = json.loads(apply_fix(client, text, fix).content)["text"]
    assert fixed == text.replace("Suceeded", "Succeeded")
    document = Document(text, "openpai-v1")
    assert job_submission.apply_fixes(document) is document


def test_editor_whole_fix_replaces_pasted_text_with_job_file(people: People) -> None:
    client = browser(people.owner)
    text = f"```json\n{HELLO}\n```\n"
    answer = check(client, text)
    assert (answer["dialect"], answer["problems"]) == ("openpai-v1", [])
    [told] = [note for note in answer["notes"] if note["code"] == "read_from_markdown"]
    assert json.loads(apply_fix(client, text, told["fix"]).content)["text"].strip() == HELLO.strip()
    [problem] = check(client, "python train.py")["problems"]
    new = json.loads(apply_fix(client, "python train.py", problem["fix"]).content)["text"]
    assert json.loads(new)["UserCommand"] == "python train.py"
    everything = client.post("/jobs/mend", {"text": "python train.py", "fix": "all"})
    assert json.loads(everything.content)["text"] == new
