"""New job: the form, what becomes of it, and that nothing typed is ever lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError
from django.test import Client

from jobs.models import Draft, Job, JobFile
from jobs.states import State
from jobs.submission import job_submission
from quotas.models import Membership, Role
from tests.factories import make_cluster, make_job, make_quota
from tests.jobs.web.conftest import People, browser, fragment, seen

if TYPE_CHECKING:
    from django.test.client import _MonkeyPatchedWSGIResponse as Response

SEEDS = Path(__file__).parents[2] / "data" / "seeds"
HELLO = (SEEDS / "helloworld.json").read_text(encoding="utf-8")
JUPYTER = (SEEDS / "jupyter.json").read_text(encoding="utf-8")


def post(client: Client, text: str = HELLO, **fields: object) -> Response:
    return client.post("/jobs/new", {"text": text, "key": "k1", "do": "submit", **fields})


def test_pasted_file_becomes_job_and_page_lists_ignored_fields(people: People) -> None:
    client = browser(people.owner)
    response = post(client, HELLO.replace("\n", "\r\n"))
    job = Job.objects.get()
    assert response["Location"] == f"/jobs/{job.public_id}/"
    assert (job.name, job.owner, job.quota) == ("helloworld_16be675e", people.owner, people.quota)
    assert JobFile.objects.get(job=job).text == HELLO
    text = seen(client.get(response["Location"]))
    assert "Submitted helloworld_16be675e." in text
    assert "storageGB" in text


def test_uploaded_file_overrides_typed_text(people: People) -> None:
    upload = SimpleUploadedFile("job.json", HELLO.replace("helloworld", "uploaded").encode())
    post(browser(people.owner), "typed", upload=upload)
    assert Job.objects.get().name == "uploaded_16be675e"


@pytest.mark.parametrize("data", [b"\xff\xfe\xfa", b"[" * 2_000_000], ids=["no text", "too large"])
def test_unusable_upload_shows_problem_and_retains_typed_text(people: People, data: bytes) -> None:
    response = post(browser(people.owner), "my own words", upload=SimpleUploadedFile("job.json", data))
    assert response.status_code == 422
    assert "my own words" in seen(response)
    assert response.context["findings"].problems


@pytest.mark.parametrize("text", ["", "{", "<b>&", HELLO.replace('"taskNumber": 1', '"taskNumber": true')])
def test_refused_submission_returns_text_with_its_problems(people: People, text: str) -> None:
    response = post(browser(people.owner), text)
    assert response.status_code == 422
    assert response.context["text"] == text
    problems = response.context["findings"].problems
    assert problems
    assert problems[0].message in seen(response)
    assert not Job.objects.exists()
    assert list(Draft.objects.values_list("text", flat=True)) == ([text] if text else [])


def test_problem_names_its_line_and_shows_it(people: People) -> None:
    broken = HELLO.replace('"taskNumber": 1', '"taskNumber": true')
    [problem] = post(browser(people.owner), broken).context["findings"].problems
    assert problem.pointer == "/taskRoles/0/taskNumber"
    assert problem.excerpt == '"taskNumber": true,'
    assert broken.splitlines()[problem.line - 1].strip() == problem.excerpt


def test_new_job_page_submitted_twice_creates_one_job(people: People) -> None:
    client = browser(people.owner)
    assert post(client)["Location"] == post(client)["Location"]
    assert Job.objects.count() == 1


def test_resubmitted_page_with_changed_text_requires_confirmation(people: People) -> None:
    client = browser(people.owner)
    post(client)
    changed = HELLO.replace("16be675e", "again")
    response = post(client, changed)
    assert response.status_code == 409
    assert "Already submitted as helloworld_16be675e" in seen(response)
    assert response.context["text"] == changed
    key = response.context["form"]["key"].value()
    post(client, changed, key=key)
    assert set(Job.objects.values_list("name", flat=True)) == {"helloworld_16be675e", "helloworld_again"}


def test_new_job_form_with_busy_database_retains_text(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_arguments: object, **_options: object) -> None:
        raise OperationalError("database is locked")

    client = browser(people.owner)
    with monkeypatch.context() as patched:
        patched.setattr(job_submission, "store", locked)
        response = post(client)
    assert response.status_code == 503
    assert response.context["text"] == HELLO
    assert "nothing was submitted" in seen(response)
    post(client, key=response.context["form"]["key"].value())
    assert Job.objects.count() == 1


def test_submission_without_a_quota_is_refused_with_reason(people: People) -> None:
    Membership.objects.filter(user=people.member).update(role=Role.VIEWER)
    response = post(browser(people.member))
    assert response.status_code == 422
    assert "No quota in any workspace where you can submit jobs." in seen(response)


def test_quota_choice_is_limited_to_accessible_quotas(people: People) -> None:
    other = make_quota(people.quota.workspace, make_cluster("far", name="Far away"), "big", name="Big")
    hidden = make_quota()
    client = browser(people.owner)
    page = seen(client.get("/jobs/new"))
    assert 'value="vision/far/big"' in page
    assert hidden.workspace.slug not in page
    post(client, place="vision/far/big")
    assert Job.objects.get().quota == other
    response = post(client, place=f"{hidden.workspace.slug}/{hidden.cluster.slug}/{hidden.slug}", key="k2")
    assert response.status_code == 422
    assert Job.objects.count() == 1


def test_quota_choice_with_single_quota_is_hidden(people: People) -> None:
    assert "Run on" not in seen(browser(people.owner).get("/jobs/new"))


def test_fixed_command_is_shown_and_used(people: People) -> None:
    client = browser(people.owner)
    response = post(client, JUPYTER, do="check")
    [command_fix] = response.context["findings"].fixes
    assert "0.0.0.0" in command_fix.old
    assert "0.0.0.0" not in command_fix.new
    assert command_fix.new in seen(response)
    assert "keep_original" in seen(response)
    post(client, JUPYTER)
    assert JobFile.objects.get().spec.roles[0].command == command_fix.new


def test_original_command_is_used_on_request(people: People) -> None:
    post(browser(people.owner), JUPYTER, keep_original="on")
    assert JobFile.objects.get().spec.roles[0].command == json.loads(JUPYTER)["taskRoles"][0]["command"]


def test_editor_fetches_the_command_fixes_alone(people: People) -> None:
    data = {"text": JUPYTER, "key": "k1", "do": "check", "keep_original": "on"}
    response = browser(people.owner).post("/jobs/new", data, headers=fragment("fixes"))
    text = seen(response)
    assert text.startswith('<div id="fixes"')
    assert "checked" in text


def test_check_stores_no_job_and_no_draft(people: People) -> None:
    post(browser(people.owner), do="check")
    assert not Job.objects.exists()
    assert not Draft.objects.exists()


def test_draft_is_saved_reopened_and_removed_on_submission(people: People) -> None:
    client = browser(people.owner)
    response = post(client, '{"jobName": "half', do="save")
    draft = Draft.objects.get(owner=people.owner)
    assert response["Location"] == f"/jobs/new?draft={draft.pk}"
    page = seen(client.get(response["Location"]))
    assert '{"jobName": "half' in page
    assert f'name="draft" value="{draft.pk}"' in page
    post(client, draft=draft.pk)
    assert not Draft.objects.exists()


def test_draft_of_another_person_is_neither_shown_nor_deleted(people: People) -> None:
    draft = Draft.objects.create(owner=people.member, text="bob's own")
    client = browser(people.owner)
    assert "bob's own" not in seen(client.get(f"/jobs/new?draft={draft.pk}"))
    post(client, draft=draft.pk)
    assert Draft.objects.filter(pk=draft.pk).exists()


def test_job_clone_starts_from_the_file_under_the_next_name(people: People) -> None:
    post(browser(people.owner))
    job = Job.objects.get()
    client = browser(people.owner)
    response = client.get(f"/jobs/new?like={job.public_id}")
    assert response.context["text"] == HELLO.replace("helloworld_16be675e", "helloworld_16be675e-2")
    line, column = response.context["cursor"]
    assert HELLO.splitlines()[line - 1][column - 1 :].startswith("nvidia-smi")
    post(client, response.context["text"], key="k2", origin=job.public_id)
    assert Job.objects.get(name="helloworld_16be675e-2").origin == job


def test_job_clone_is_limited_to_readers_of_the_file(people: People) -> None:
    job = make_job(State.FAILED, owner=people.owner, quota=people.quota, text=HELLO, dialect="openpai-v1")
    assert browser(people.member).get(f"/jobs/new?like={job.public_id}").status_code == 403
    assert browser(people.stranger).get(f"/jobs/new?like={job.public_id}").status_code == 404
    assert browser(people.manager).get(f"/jobs/new?like={job.public_id}").status_code == 200


def test_origin_hidden_from_the_user_is_not_linked(people: People) -> None:
    job = make_job(owner=people.stranger)
    post(browser(people.owner), origin=job.public_id)
    assert Job.objects.get(owner=people.owner).origin is None


def test_new_job_link_can_select_view_and_unfold_groups(people: People) -> None:
    client = browser(people.owner)
    assert 'data-new-view="both">' in seen(client.get("/jobs/new"))
    asked = seen(client.get("/jobs/new?view=form&unfold"))
    assert 'data-new-view="form" data-asked>' in asked
    assert 'id="group-env" data-group open>' in asked
    assert 'data-new-view="both">' in seen(client.get("/jobs/new?view=%22%3E"))


def test_new_job_form_starts_with_valid_file_under_free_name(people: People) -> None:
    client = browser(people.owner)
    first = client.get("/jobs/new").context
    assert (first["findings"].problems, first["findings"].dialect) == ((), "dlc")
    assert json.loads(first["text"])["JobMaxRunningTimeMinutes"] == 30 * 60  # the default of PAI-DLC's page
    assert post(client, first["text"]).status_code == 302
    assert json.loads(client.get("/jobs/new").context["text"])["DisplayName"] == "job-2"


FORM = {"form-shown": json.dumps({"name": "helloworld_16be675e", "roles-0-cpu": "1"})}


def test_form_fields_without_script_are_submitted(people: People) -> None:
    response = post(browser(people.owner), name="filled-in", **FORM)
    assert response.status_code == 302
    assert JobFile.objects.get().text == HELLO.replace("helloworld_16be675e", "filled-in")


def test_invalid_form_field_shows_error_and_retains_input(people: People) -> None:
    response = post(browser(people.owner), **FORM, **{"name": "filled-in", "roles-0-cpu": "many"})
    assert response.status_code == 422
    page = seen(response)
    assert "“many” is not a number." in page
    assert 'name="roles-0-cpu" value="many"' in page
    assert not Job.objects.exists()
    assert '"filled-in"' in Draft.objects.get().text


def test_uploaded_file_overrides_form_fields(people: People) -> None:
    upload = SimpleUploadedFile("job.json", HELLO.replace("helloworld", "uploaded").encode())
    post(browser(people.owner), "typed", upload=upload, name="filled-in", **FORM)
    assert Job.objects.get().name == "uploaded_16be675e"


@pytest.mark.parametrize("example", ["helloworld", "countdown"])
def test_example_files_are_accepted(people: People, example: str) -> None:
    client = browser(people.owner)
    text = client.get(f"/jobs/new?example={example}").context["text"]
    assert post(client, text).status_code == 302


def test_new_job_form_requires_sign_in(db: None) -> None:
    assert browser().get("/jobs/new").status_code == 302
    assert post(browser()).status_code == 302
    assert not Job.objects.exists()


BOTH = json.dumps({**json.loads(HELLO), "JobType": "PyTorchJob", "JobSpecs": []})
"""OpenPAI's keys beside PAI-DLC's."""


def test_file_fitting_two_dialects_is_submitted_in_chosen_dialect(people: People) -> None:
    client = browser(people.owner)
    refused = post(client, BOTH)
    assert refused.status_code == 422
    assert [found.code for found in refused.context["findings"].problems] == ["ambiguous_dialect"]
    assert post(client, BOTH, dialect="openpai-v1").status_code == 302
    assert Job.objects.get().dialect == "openpai-v1"


def test_dialect_choice_is_restored_from_draft_and_clone(people: People) -> None:
    client = browser(people.owner)
    post(client, BOTH, do="save", dialect="openpai-v1")
    draft = Draft.objects.get()
    form = client.get(f"/jobs/new?draft={draft.pk}").context["form"]
    assert (draft.dialect, form["dialect"].value()) == ("openpai-v1", "openpai-v1")
    post(client, BOTH, dialect="openpai-v1", key="other")
    job = Job.objects.get()
    again = client.get(f"/jobs/new?like={job.public_id}").context
    assert (again["form"]["dialect"].value(), again["findings"].problems) == ("openpai-v1", ())
    assert again["before_url"] == f"/jobs/{job.public_id}/file"


def test_dialect_choice_is_dropped_for_unambiguous_file(people: People) -> None:
    client = browser(people.owner)
    post(client, do="save", dialect="openpai-v1")
    page = client.get(f"/jobs/new?draft={Draft.objects.get().pk}")
    assert page.context["form"]["dialect"].value() == ""
    assert page.context["before_url"] == ""


def test_unknown_dialect_is_refused(people: People) -> None:
    assert post(browser(people.owner), dialect="word").status_code == 422
    assert not Job.objects.exists()


def test_new_job_query_count_does_not_grow_with_quotas(
    people: People, django_assert_max_num_queries: Callable[..., AbstractContextManager[object]]
) -> None:
    for _number in range(8):
        make_quota(people.quota.workspace)
    client = browser(people.owner)
    client.get("/jobs/new")
    with django_assert_max_num_queries(27):
        client.get("/jobs/new")
