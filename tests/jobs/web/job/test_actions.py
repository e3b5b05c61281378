"""Stop, retry, share, delete: by whom, and what follows."""

from __future__ import annotations

import pytest
from django.test import Client

from jobs.models import Job, JobFile, Visibility
from jobs.states import ReasonCode, State
from quotas.models import Membership, Role
from tests.factories import attempt_of, make_job
from tests.jobs.api.conftest import api
from tests.jobs.web.conftest import People, browser, seen
from tests.jobs.web.test_new import HELLO, post

VERBS = ("stop", "retry", "share", "delete")


@pytest.fixture
def job(people: People) -> Job:
    """As submitted by hand: the ledger knows of it."""
    post(browser(people.owner))
    return Job.objects.get()


def ended(people: People) -> Job:
    return make_job(State.FAILED, owner=people.owner, quota=people.quota, text=HELLO, dialect="openpai-v1")


@pytest.mark.parametrize("verb", VERBS)
def test_job_action_is_refused_to_members_and_hidden_from_strangers(
    people: People, job: Job, verb: str
) -> None:
    assert browser(people.member).post(f"/jobs/{job.public_id}/{verb}").status_code == 403
    assert browser(people.stranger).post(f"/jobs/{job.public_id}/{verb}").status_code == 404
    assert browser().post(f"/jobs/{job.public_id}/{verb}").status_code == 302
    job.refresh_from_db()
    assert (job.state, job.visibility, Job.objects.count()) == (State.QUEUED, Visibility.PRIVATE, 1)


@pytest.mark.parametrize("verb", VERBS)
def test_job_action_by_get_is_not_allowed(people: People, job: Job, verb: str) -> None:
    assert browser(people.owner).get(f"/jobs/{job.public_id}/{verb}").status_code == 405


@pytest.mark.parametrize("verb", VERBS)
def test_job_action_without_csrf_token_is_refused(people: People, job: Job, verb: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(people.owner)
    assert client.post(f"/jobs/{job.public_id}/{verb}").status_code == 403


def test_stop_of_waiting_job_takes_effect_at_once(people: People, job: Job) -> None:
    client = browser(people.owner)
    assert client.post(f"/jobs/{job.public_id}/stop")["Location"] == f"/jobs/{job.public_id}/"
    job.refresh_from_db()
    assert job.state == State.STOPPED
    assert "alice" in seen(client.get(f"/jobs/{job.public_id}/"))


def test_stop_of_running_job_is_requested_and_shown(people: People) -> None:
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota)
    client = browser(people.manager)
    client.post(f"/jobs/{job.public_id}/stop")
    assert attempt_of(job).end_kind == "admin_stop"
    assert "Stopping." in seen(client.get(f"/jobs/{job.public_id}/"))


def test_stop_of_selected_jobs_reports_those_not_stopped(people: People) -> None:
    mine = [make_job(State.RUNNING, owner=people.owner, quota=people.quota) for _each in range(2)]
    other = make_job(State.RUNNING, owner=people.member, quota=people.quota)
    hidden = make_job(State.RUNNING, owner=people.stranger)
    ids = [job.public_id for job in (*mine, other, hidden)]
    client = browser(people.owner)
    response = client.post("/jobs/several", {"act": "stop", "id": ids, "next": "/jobs/?state=running"})
    assert response["Location"] == "/jobs/?state=running"
    assert [attempt_of(job).end_kind for job in (*mine, other, hidden)] == ["user_stop", "user_stop", "", ""]
    text = seen(client.get("/jobs/"))
    assert "Stopping 2 jobs." in text
    assert "Not done with 2 jobs" in text


def test_stop_redirect_to_foreign_site_is_ignored(people: People) -> None:
    response = browser(people.owner).post("/jobs/several", {"act": "stop", "next": "https://evil.example/"})
    assert response["Location"] == "/jobs/"


def test_retry_creates_one_job_despite_double_click(people: People) -> None:
    job = ended(people)
    client = browser(people.owner)
    places = {client.post(f"/jobs/{job.public_id}/retry", {"key": "k9"})["Location"] for _twice in range(2)}
    again = Job.objects.exclude(pk=job.pk).get()
    assert places == {f"/jobs/{again.public_id}/"}
    assert (again.name, again.origin) == ("helloworld_16be675e", job)


def test_rerun_after_out_of_memory_doubles_the_memory(people: People) -> None:
    client = browser(people.owner)
    post(client)
    job = Job.objects.get()
    role = JobFile.objects.get(job=job).spec.roles[0]
    assert "Rerun with" not in seen(client.get(f"/jobs/{job.public_id}/"))
    client.post(f"/jobs/{job.public_id}/retry", {"key": "a", "memory": "more", "second_copy": "yes"})
    assert Job.objects.count() == 1
    params = {"role": role.name, "index": 0, "limit_mib": role.resources.memory_mib}
    Job.objects.filter(pk=job.pk).update(
        state=State.FAILED, reason_code=ReasonCode.OUT_OF_MEMORY, reason_params=params
    )
    assert "Rerun with" in seen(client.get(f"/jobs/{job.public_id}/"))
    client.post(f"/jobs/{job.public_id}/retry", {"key": "b", "memory": "more"})
    again = JobFile.objects.get(job__origin=job)
    assert again.spec.roles[0].resources.memory_mib == 2 * role.resources.memory_mib
    assert again.spec.roles[0].command == role.command
    assert api(people.owner).post(f"jobs/{job.public_id}/again?memory=more").status_code == 201
    assert api(people.owner).post(f"jobs/{again.job.public_id}/again?memory=more").status_code == 409


def test_retry_of_running_job_asks_for_confirmation(people: People) -> None:
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota, text=HELLO, dialect="openpai-v1")
    client = browser(people.owner)
    page = seen(client.get(f"/jobs/{job.public_id}/"))
    assert "has not ended. Start a second copy?" in page
    told = seen(client.post(f"/jobs/{job.public_id}/retry", {"key": "k1"}, follow=True))
    assert "The job has not ended." in told
    assert Job.objects.count() == 1
    client.post(f"/jobs/{job.public_id}/retry", {"key": "k1", "second_copy": "yes"})
    assert Job.objects.count() == 2
    assert "second copy" not in seen(client.get(f"/jobs/{ended(people).public_id}/"))


def test_retry_without_submit_right_is_refused_with_message(people: People) -> None:
    job = ended(people)
    Job.objects.filter(pk=job.pk).update(visibility=Visibility.PUBLIC)
    Membership.objects.filter(user=people.member).update(role=Role.VIEWER)
    response = browser(people.member).post(f"/jobs/{job.public_id}/retry", follow=True)
    assert "The job can't be rerun unchanged." in seen(response)
    assert Job.objects.count() == 1


def test_retry_of_unreadable_job_leads_to_new_job_page(people: People) -> None:
    job = make_job(State.FAILED, owner=people.owner, quota=people.quota, text="{", dialect="openpai-v1")
    response = browser(people.owner).post(f"/jobs/{job.public_id}/retry")
    assert response["Location"] == f"/jobs/new?like={job.public_id}"


def test_share_opens_and_closes_job(people: People, job: Job) -> None:
    client = browser(people.owner)
    for visibility in (Visibility.PUBLIC, Visibility.PRIVATE):
        client.post(f"/jobs/{job.public_id}/share", {"visibility": visibility})
        job.refresh_from_db()
        assert job.visibility == visibility


def test_delete_removes_ended_job(people: People) -> None:
    job = ended(people)
    client = browser(people.owner)
    assert client.post(f"/jobs/{job.public_id}/delete")["Location"] == "/jobs/"
    assert client.get(f"/jobs/{job.public_id}/").status_code == 404


def test_delete_of_running_job_is_refused(people: People) -> None:
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota)
    response = browser(people.owner).post(f"/jobs/{job.public_id}/delete", follow=True)
    assert "Stop the job first." in seen(response)
    assert Job.objects.visible_to(people.owner).filter(pk=job.pk).exists()
