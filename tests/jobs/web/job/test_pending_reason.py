"""A waiting job's page: why, who is ahead, what would start it, and the clicks that do it."""

from __future__ import annotations

import pytest

from jobs import submission
from jobs.dialects.base import Parsed
from jobs.dialects.document import Document
from jobs.models import Job, JobFile
from jobs.scheduling import admission
from jobs.spec import Resources, RoleSpec
from jobs.states import State
from quotas import ledger
from quotas.amounts import Amounts
from quotas.models import Node, Quota, Request, Reservation, User
from tests.factories import attempt_of, make_quota, make_spec
from tests.jobs.web.conftest import People, browser, seen

TEXT = (
    '{"jobName": "big", "image": "i", "gpuType": "A100", "taskRoles": [{"name": "w", "taskNumber": 1,'
    ' "cpuNumber": 1, "memoryMB": 512, "gpuNumber": 8, "command": "true"}]}'
)


@pytest.fixture
def job(people: People) -> Job:
    """It wants eight GPUs of one node, which has eight, of which three are held."""
    Node.objects.create(
        cluster=people.quota.cluster,
        name="n1",
        cpu_milli=64_000,
        memory_mib=65_536,
        gpus={"A100": 8, "P100": 8},
    )
    holder = ledger.ask("x", quota=people.quota, owner=people.owner, parts=[], priority=1, declared_s=None)
    ledger.reserve(holder, [("n1", Amounts(1000, 1024, {"A100": 3}))])
    made = submission.submit(people.owner, Document(TEXT)).job
    admission.admit(people.quota.cluster_id)
    return made


def page_of(user: User, job: Job) -> str:
    return seen(browser(user).get(f"/jobs/{job.public_id}/"))


def smaller(owner: User, quota: Quota, name: str) -> Job:
    role = RoleSpec(name="w", command="true", resources=Resources(gpus=2, gpu_type="A100"))
    return submission.store(
        owner,
        Document("{}", "openpai-v1").with_parsed(Parsed(make_spec(name=name, roles=(role,)), text="{}")),
        quota,
    )


def test_waiting_job_page_shows_reason_and_possible_changes(people: People, job: Job) -> None:
    text = page_of(people.owner, job)
    assert "Waiting for 8 A100 GPUs: 5 A100 GPUs free on This machine now. Request 5 A100 GPUs" in text
    assert "Position 1 in queue." in text
    assert "Start now on P100 GPUs" in text
    assert "No start estimate: only 0 jobs of this size" in text
    assert 'data-live="job:' + job.public_id + ' queue"' in text


def test_job_lists_show_queue_position(people: People, job: Job) -> None:
    for address in ("/jobs/", "/"):
        assert "Position 1 in queue." in seen(browser(people.owner).get(address))


def test_waiting_job_page_names_jobs_ahead_only_if_visible(people: People, job: Job) -> None:
    elsewhere = make_quota(cluster=people.quota.cluster)
    stranger = smaller(people.stranger, elsewhere, "secret")
    behind = smaller(people.owner, people.quota, "behind")
    Job.objects.filter(pk=stranger.pk).update(priority=9)
    Request.objects.filter(holder=attempt_of(stranger).key).update(priority=9)
    admission.admit(people.quota.cluster_id)
    text = page_of(people.owner, behind)
    assert "(1 job ahead, 8 GPUs requested)" in text or "(2 jobs ahead" in text
    assert f'href="/jobs/{job.public_id}/"' in text
    assert "secret" not in text


def test_instead_action_submits_changed_job_and_stops_waiting_one(people: People, job: Job) -> None:
    client = browser(people.owner)
    response = client.post(f"/jobs/{job.public_id}/instead", {"kind": "gpu_type", "value": "P100"})
    again = Job.objects.exclude(pk=job.pk).get()
    assert response["Location"] == f"/jobs/{again.public_id}/"
    job.refresh_from_db()
    assert (job.state, again.origin, again.gpu_type) == (State.STOPPED, job, "P100")
    assert admission.admit(people.quota.cluster_id) == 1
    assert '"gpuType": "P100"' in JobFile.objects.get(job=again).text


@pytest.mark.parametrize(
    "change", [("gpus", "5"), ("gpus", "0"), ("gpus", "99"), ("replicas", "2"), ("x", "1")]
)
def test_instead_action_accepts_only_smaller_requests(
    people: People, job: Job, change: tuple[str, str]
) -> None:
    browser(people.owner).post(f"/jobs/{job.public_id}/instead", {"kind": change[0], "value": change[1]})
    assert Job.objects.count() == (2 if change == ("gpus", "5") else 1)
    job.refresh_from_db()
    assert job.state == (State.STOPPED if change == ("gpus", "5") else State.QUEUED)


def test_instead_action_moves_job_to_quota_with_room(people: People, job: Job) -> None:
    Quota.objects.filter(pk=people.quota.pk).update(gpus=4)
    Reservation.objects.update(active=False)
    other = make_quota(people.quota.workspace, people.quota.cluster, "roomy")
    admission.admit(people.quota.cluster_id)
    assert "Start now in vision/local/roomy" in page_of(people.owner, job)
    client = browser(people.owner)
    client.post(f"/jobs/{job.public_id}/instead", {"kind": "quota", "value": "vision/local/roomy"})
    assert Job.objects.exclude(pk=job.pk).get().quota == other


def test_instead_action_on_running_job_changes_nothing(people: People, job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(state=State.RUNNING)
    browser(people.owner).post(f"/jobs/{job.public_id}/instead", {"kind": "gpu_type", "value": "P100"})
    assert Job.objects.count() == 1


def test_hold_and_release_are_buttons_on_job_page(people: People, job: Job) -> None:
    client = browser(people.owner)
    assert "Hold" in page_of(people.owner, job)
    client.post(f"/jobs/{job.public_id}/hold")
    admission.admit(people.quota.cluster_id)
    text = page_of(people.owner, job)
    assert f"Held by {people.owner}" in text
    assert "Release" in text
    assert "No start estimate: the job is held until released." in text
    client.post(f"/jobs/{job.public_id}/release")
    admission.admit(people.quota.cluster_id)
    assert "Position 1 in queue." in page_of(people.owner, job)
    assert "Only waiting jobs can be held." not in page_of(people.owner, job)


def test_waiting_job_page_shows_members_reason_without_actions(people: People, job: Job) -> None:
    text = page_of(people.member, job)
    assert "Position 1 in queue." in text
    assert "Start now with" not in text
    assert "Hold" not in text


def test_job_api_holds_releases_and_shows_reason(people: People, job: Job) -> None:
    client = browser(people.owner)
    address = f"/api/console/v1/jobs/{job.public_id}"
    assert "Position 1 in queue." in client.get(address).json()["reason"]["message"]
    held = client.post(f"{address}/hold", content_type="application/json")
    assert held.json()["reason"]["code"] == "held"
    assert client.post(f"{address}/hold", content_type="application/json").status_code == 409
    assert client.post(f"{address}/release").status_code == 200
    assert browser(people.member).post(f"{address}/hold").status_code == 403
    assert browser(people.stranger).post(f"{address}/hold").status_code == 404


@pytest.mark.parametrize("who", ["manager", "admin"])
@pytest.mark.parametrize("reason", ["", " \t"])
def test_hold_of_another_persons_job_requires_a_reason(
    people: People, job: Job, who: str, reason: str
) -> None:
    user = getattr(people, who)
    with pytest.raises(submission.ReasonMissing):
        submission.hold(user, job, why=reason)
    client = browser(user)
    assert "Enter a reason for the hold" in seen(
        client.post(f"/jobs/{job.public_id}/hold", {"why": reason}, follow=True)
    )
    answer = client.post(
        f"/api/console/v1/jobs/{job.public_id}/hold", {"reason": reason}, content_type="application/json"
    )
    (problem,) = answer.json()["problems"]
    assert (answer.status_code, problem["pointer"]) == (400, "/reason")
    assert problem["message"] == "Enter a reason for the hold; the job owner will see it."
    assert not Request.objects.get(holder__contains=job.public_id).held


@pytest.mark.parametrize("who", ["owner", "manager", "admin"])
def test_hold_reason_is_shown_to_all_viewers_of_job(people: People, job: Job, who: str) -> None:
    address = f"/api/console/v1/jobs/{job.public_id}"
    answer = browser(getattr(people, who)).post(
        f"{address}/hold", {"reason": " the data are moving "}, content_type="application/json"
    )
    told = f"Held by {getattr(people, who)}: the data are moving. Waiting time keeps counting"
    assert answer.json()["reason"]["message"].startswith(told)
    admission.admit(people.quota.cluster_id)
    for reader in (people.owner, people.member):
        assert told in page_of(reader, job)
        assert told in browser(reader).get(address).json()["reason"]["message"]


@pytest.mark.parametrize(("who", "status"), [("member", 403), ("stranger", 404)])
def test_hold_without_right_is_refused_before_reason_is_read(
    people: People, job: Job, who: str, status: int
) -> None:
    client = browser(getattr(people, who))
    for address in (f"/jobs/{job.public_id}/hold", f"/api/console/v1/jobs/{job.public_id}/hold"):
        assert client.post(address).status_code == status
    if who == "member":
        with pytest.raises(submission.Forbidden):
            submission.hold(people.member, job)


def test_hold_reason_has_length_limit(people: People, job: Job) -> None:
    client, address = browser(people.admin), f"/api/console/v1/jobs/{job.public_id}/hold"
    longest = "x" * submission.LONGEST_REASON
    for reason, status in ((longest + "x", 400), (longest, 200)):
        answer = client.post(address, {"reason": reason}, content_type="application/json")
        assert answer.status_code == status


def test_waiting_job_page_query_count_does_not_grow_with_queue(
    people: People, job: Job, django_assert_max_num_queries: object
) -> None:
    for number in range(12):
        smaller(people.owner, people.quota, f"s{number}")
    admission.admit(people.quota.cluster_id)
    client = browser(people.owner)
    client.get(f"/jobs/{job.public_id}/")
    with django_assert_max_num_queries(38):  # type: ignore[operator]
        client.get(f"/jobs/{Job.objects.order_by('-pk')[0].public_id}/")
