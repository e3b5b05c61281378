"""The job file as a download."""

from __future__ import annotations

from jobs.models import Job, Visibility
from tests.factories import make_job
from tests.jobs.views.conftest import People, browser


def test_readers_get_the_submitted_text(people: People) -> None:
    job = make_job(
        owner=people.owner, quota=people.quota, name="a b/ü", text='{"名": 1}', dialect="openpai-v1"
    )
    for user in (people.owner, people.manager, people.admin):
        response = browser(user).get(f"/jobs/{job.public_id}/file")
        assert response.content.decode() == '{"名": 1}'
        assert response["Content-Disposition"] == 'attachment; filename="a_b__.json"'
        assert response["Content-Type"].startswith("text/plain")


def test_members_get_it_once_it_is_shared(people: People) -> None:
    job = make_job(owner=people.owner, quota=people.quota, text="{}")
    client = browser(people.member)
    assert client.get(f"/jobs/{job.public_id}/file").status_code == 403
    Job.objects.filter(pk=job.pk).update(visibility=Visibility.PUBLIC)
    assert client.get(f"/jobs/{job.public_id}/file").status_code == 200


def test_strangers_find_nothing(people: People) -> None:
    job = make_job(owner=people.owner, quota=people.quota, text="{}")
    assert browser(people.stranger).get(f"/jobs/{job.public_id}/file").status_code == 404
    assert browser().get(f"/jobs/{job.public_id}/file").status_code == 302
