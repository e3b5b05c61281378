"""POST check: what the console makes of a file, before anything is submitted."""

from __future__ import annotations

import json

import pytest

from jobs.facilities import Facilities
from jobs.models import Job
from quotas.models import Cluster
from tests.jobs.api.conftest import People, api, body_of, file, problem


def test_check_of_a_valid_file_returns_notes_and_no_problems(people: People) -> None:
    told = body_of(api(people.owner).post("check", {"file": file(storageGB=5)}))
    assert (told["dialect"], told["ok"], told["problems"]) == ("openpai-v1", True, [])
    assert [note["pointer"] for note in told["notes"]] == ["/storageGB"]
    assert not Job.objects.exists()


def test_check_of_an_invalid_file_returns_problems_without_error(people: People) -> None:
    told = body_of(api(people.owner).post("check", {"file": "{", "dialect": "openpai-v1"}))
    assert told["ok"] is False
    assert told["problems"][0]["line"] == 1


def test_check_is_allowed_without_a_place_to_submit(people: People) -> None:
    assert body_of(api(people.stranger).post("check", {"file": file()}))["ok"] is True


def facilities_of(people: People, **changes: object) -> None:
    """What the cluster's backend has told of it."""
    told = Facilities(images=False, plain=False, folders=(), code=())
    Cluster.objects.update(facilities={**told.to_json(), **changes})


def test_check_of_an_unrunnable_image_offers_and_applies_an_action(people: People) -> None:
    facilities_of(people)
    someone = api(people.owner)
    told = body_of(someone.post("check", {"file": file(image="a/b")}))
    (found,) = told["problems"]
    assert (told["ok"], found["code"], told["file"]) == (False, "image_not_run", None)
    (action,) = found["actions"]
    assert action == {"kind": "without_image", "value": "", "label": "Run without image"}
    done = body_of(someone.post("check", {"file": file(image="a/b"), "actions": [action]}))
    assert (done["ok"], json.loads(done["file"])["image"]) == (True, "")


def test_check_with_an_impossible_action_is_refused(people: People) -> None:
    asked = {"file": file(), "actions": [{"kind": "without_mount", "value": "9"}]}
    assert problem(api(people.owner).post("check", asked))["status"] == 400


def test_check_notes_unfilled_words_in_braces(people: People) -> None:
    roles = [{"name": "w", "command": "train --lr {lr} --home ${HOME} '{quoted}'"}]
    told = body_of(api(people.owner).post("check", {"file": file(taskRoles=roles)}))
    (note,) = (each for each in told["notes"] if each["code"] == "word_unfilled")
    assert note["message"].startswith("The command contains {lr}, but no sweep parameter has that name.")
    assert told["ok"] is True
    submitted = body_of(api(people.owner).submit(file(taskRoles=roles)), 201)
    assert note["message"] in [each["message"] for each in submitted["notes"]]


def test_check_without_need_of_an_image_has_no_missing_image_note(people: People) -> None:
    without = file(image="")
    codes = [note["code"] for note in body_of(api(people.owner).post("check", {"file": without}))["notes"]]
    assert "no_image" in codes
    facilities_of(people)
    codes = [note["code"] for note in body_of(api(people.owner).post("check", {"file": without}))["notes"]]
    assert "no_image" not in codes


@pytest.mark.parametrize("path", ["jobs", "preview"])
def test_submission_and_preview_report_the_same_problem(people: People, path: str) -> None:
    facilities_of(people)
    answer = api(people.owner).post(path, {"file": file(image="a/b")})
    told = problem(answer) if path == "jobs" else body_of(answer)
    assert [each["code"] for each in told["problems"]] == ["image_not_run"]
    assert told["problems"][0]["actions"][0]["kind"] == "without_image"
    assert not Job.objects.exists()


def test_check_and_convert_read_a_pasted_http_request(people: People) -> None:
    text = f"POST /api/v1/jobs HTTP/1.1\nHost: x\n\n{file()}"
    told = body_of(api(people.owner).post("check", {"file": text}))
    assert (told["dialect"], told["ok"]) == ("openpai-v1", True)
    assert (told["notes"][0]["code"], told["notes"][0]["line"]) == ("read_from_http", 4)
    assert told["notes"][0]["fix"]["value"] == file()
    made = body_of(api(people.owner).post("convert", {"file": text, "to": "dlc"}))
    assert "UserCommand" in made["text"]


def test_check_offers_a_command_as_start_command(people: People) -> None:
    told = body_of(api(people.owner).post("check", {"file": "torchrun train.py"}))
    [problem] = told["problems"]
    assert (told["ok"], problem["code"], problem["fix"]["pointer"]) == (False, "is_a_command", "")
    assert body_of(api(people.owner).post("check", {"file": problem["fix"]["value"]}))["ok"] is True


def test_check_and_submission_note_a_field_without_effect(people: People) -> None:
    text = file(extras={"jobConsole": {"network": {"vpc": "vpc-1"}}})
    someone = api(people.owner)
    (note,) = (
        each
        for each in body_of(someone.post("check", {"file": text}))["notes"]
        if each["code"] == "no_effect"
    )
    assert note["message"] == (
        "Network: No effect on this cluster (kept for export). "
        "Specific to the vendor's cloud; kept for export."
    )
    assert isinstance(note["line"], int)
    accepted = body_of(someone.post("jobs", {"file": text}), 201)
    assert "no_effect" in [each["code"] for each in accepted["notes"]]
