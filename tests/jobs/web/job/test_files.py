"""The job file as a download."""

from __future__ import annotations

from jobs.models import Job, Visibility
from tests.factories import make_job
from tests.jobs.web.conftest import People, browser


def test_job_file_is_downloaded_as_submitted_by_readers(people: People) -> None:
    job = make_job(
        owner=people.owner, quota=people.quota, name="a b/ü", text='{"名": 1}', dialect="openpai-v1"
    )
    for user in (people.owner, people.manager, people.admin):
        response = browser(user).get(f"/jobs/{job.public_id}/file")
        assert response.content.decode() == '{"名": 1}'
        assert response["Content-Disposition"] == 'attachment; filename="a_b__.json"'
        assert response["Content-Type"].startswith("text/plain")


def test_job_file_is_open_to_members_only_after_sharing(people: People) -> None:
    job = make_job(owner=people.owner, quota=people.quota, text="{}")
    client = browser(people.member)
    assert client.get(f"/jobs/{job.public_id}/file").status_code == 403
    Job.objects.filter(pk=job.pk).update(visibility=Visibility.PUBLIC)
    assert client.get(f"/jobs/{job.public_id}/file").status_code == 200


def test_job_file_is_hidden_from_strangers(people: People) -> None:
    job = make_job(owner=people.owner, quota=people.quota, text="{}")
    assert browser(people.stranger).get(f"/jobs/{job.public_id}/file").status_code == 404
    assert browser().get(f"/jobs/{job.public_id}/file").status_code == 302


def test_job_file_is_converted_to_other_dialect_for_readers(people: People) -> None:
    text = '{"jobName": "a", "image": "i", "taskRoles": [{"name": "m", "command": "c"}]}'
    job = make_job(owner=people.owner, quota=people.quota, name="a", text=text, dialect="openpai-v1")
    address = f"/jobs/{job.public_id}/file?as=dlc-params"
    response = browser(people.owner).get(address)
    assert response["Content-Disposition"] == 'attachment; filename="a.params"'
    assert "name=a" in response.content.decode().splitlines()
    assert browser(people.manager).get(address).status_code == 200
    assert browser(people.admin).get(address).status_code == 200
    assert browser(people.member).get(address).status_code == 403
    assert browser(people.stranger).get(address).status_code == 404
    assert browser(people.owner).get(f"/jobs/{job.public_id}/file?as=word").status_code == 404


def test_job_file_unreadable_for_conversion_shows_error(people: People) -> None:
    job = make_job(owner=people.owner, quota=people.quota, text="{", dialect="openpai-v1")
    response = browser(people.owner).get(f"/jobs/{job.public_id}/file?as=dlc")
    assert response.status_code == 422
    assert "line" in response.content.decode()
