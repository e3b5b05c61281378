"""POST check: what the console makes of a file, before anything is submitted."""

from __future__ import annotations

from jobs.models import Job
from tests.jobs.api.conftest import People, api, body_of, file


def test_a_file_that_would_be_accepted(people: People) -> None:
    told = body_of(api(people.owner).post("check", {"file": file(storageGB=5)}))
    assert (told["dialect"], told["ok"], told["problems"]) == ("openpai-v1", True, [])
    assert [note["pointer"] for note in told["notes"]] == ["/storageGB"]
    assert not Job.objects.exists()


def test_a_file_that_would_be_refused_is_no_error_of_the_request(people: People) -> None:
    told = body_of(api(people.owner).post("check", {"file": "{", "dialect": "openpai-v1"}))
    assert told["ok"] is False
    assert told["problems"][0]["line"] == 1


def test_whoever_may_submit_nowhere_may_still_check(people: People) -> None:
    assert body_of(api(people.stranger).post("check", {"file": file()}))["ok"] is True
