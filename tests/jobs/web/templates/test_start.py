"""From a template to a job: who is offered what, what the answers make, and where it leads."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from jobs.jobtemplates import SHIPPED
from jobs.models import Draft, Endpoint, Job, JobFile, LogStream
from jobs.scheduling import idle
from jobs.states import ReplicaState, State
from quotas.models import Node, Quota
from tests.factories import make_endpoint, make_job, make_quota, replica_of
from tests.jobs.web.conftest import People, browser, fragment, seen, write_log

pytestmark = pytest.mark.django_db


def answers(**changed: Any) -> dict[str, Any]:
    """What a browser sends for the form's first values."""
    first = {"name": "lab", "hours": 8, "idle_hours": 2, "gpus": 0, "cpus": 2, "memory": 4}
    return {**first, "key": "k1", "do": "start", **changed}


def post(client: Client, template: str = "jupyterlab", **changed: Any) -> Any:
    return client.post(reverse("start_template", args=[template]), answers(**changed))


@pytest.mark.parametrize("who", ["owner", "stranger", "admin"])
def test_start_page_offers_every_template_to_signed_in_users(people: People, who: str) -> None:
    client = browser(getattr(people, who))
    page = seen(client.get(reverse("start")))
    for template in SHIPPED.values():
        assert template.title in page
        assert client.get(f"/start/{template.id}").status_code == 200


def test_start_page_is_linked_from_home_new_job_and_drafts(people: People) -> None:
    client = browser(people.owner)
    for page in (client.get("/"), client.get("/jobs/new"), client.get("/drafts/")):
        assert f'href="{reverse("start")}"' in page.content.decode()
    assert client.get("/start/nonsense").status_code == 404


def test_start_answers_create_own_job_and_lead_to_its_progress(people: People) -> None:
    answer = post(browser(people.owner), gpus=2, gpu_type="", hours=3, folder="/data/x")
    job = Job.objects.get()
    assert answer["Location"] == f"/jobs/{job.public_id}/opening?to=jupyterlab"
    spec = JobFile.objects.get(job=job).spec
    assert (job.owner, job.quota, job.name, job.dialect) == (people.owner, people.quota, "lab", "dlc")
    assert (spec.time_limit_s, spec.roles[0].resources.gpus) == (3 * 3600, 2)
    assert (spec.env["FOLDER"], spec.mounts[0].uri) == ("/data/x", "/data/x")
    assert post(browser(people.owner), gpus=2, hours=3, folder="/data/x")["Location"] == answer["Location"]
    assert Job.objects.count() == 1
    assert post(browser(people.owner), gpus=1).status_code == 409


@pytest.mark.parametrize(("answer", "wanted"), [(3, timedelta(hours=3)), ("", None)])
def test_idle_limit_is_set_from_the_answer_or_left_out(
    people: People, answer: Any, wanted: timedelta | None
) -> None:
    post(browser(people.owner), idle_hours=answer)
    spec = JobFile.objects.get().spec
    assert idle.own_limit(spec) == wanted
    assert (idle.OWN_LIMIT in spec.env) is (wanted is not None)


def test_idle_limit_field_left_empty_stays_empty_on_the_page(people: People) -> None:
    page = browser(people.owner).get("/start/shell").content.decode()
    assert re.search(r'name="idle_hours" value="2"', page)
    again = post(browser(people.owner), "shell", idle_hours="", gpus=-1)
    field = re.search(r'<input[^>]*name="idle_hours"[^>]*>', again.content.decode())
    assert field is not None
    assert "value=" not in field[0]


def test_start_without_access_to_a_quota_is_refused(people: People) -> None:
    make_quota(people.quota.workspace, slug="second")
    answer = post(browser(people.stranger), place="vision/local/default")
    assert answer.status_code == 422
    answer = post(browser(people.stranger))
    assert answer.status_code == 422
    assert "start-file" in answer.content.decode()
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("name", ""),
        ("name", "a b"),
        ("name", "x\ny"),
        ("hours", 0),
        ("hours", 169),
        ("idle_hours", 0),
        ("idle_hours", 169),
        ("idle_hours", "soon"),
        ("gpus", -1),
        ("gpus", "many"),
        ("cpus", ""),
        ("memory", 0),
        ("gpu_type", "not-here"),
        ("folder", "relative"),
        ("folder", "/a:/b"),
        ("folder", "/a\n/b"),
        ("image", "$(touch /tmp/x)"),
    ],
)
def test_start_form_with_invalid_answer_shows_error_at_its_field(
    people: People, name: str, value: Any
) -> None:
    answer = post(browser(people.owner), **{name: value})
    assert answer.status_code == 422
    assert f'id="id_{name}_error"' in answer.content.decode()
    assert not Job.objects.exists()


def test_job_file_preview_follows_answers_and_opens_as_draft(people: People) -> None:
    client = browser(people.owner)
    address = reverse("start_template", args=["shell"])
    shown = client.post(address, answers(do="show", cpus=7), headers=fragment("start-file"))
    assert '"CPU": "7"' in seen(shown)
    assert "<form" not in shown.content.decode()
    answer = post(client, "shell", do="edit", cpus=7)
    draft = Draft.objects.get(owner=people.owner)
    assert answer["Location"].startswith(f"/jobs/new?draft={draft.pk}")
    assert '"CPU": "7"' in draft.text
    assert not Job.objects.exists()


def test_start_form_offers_at_most_the_largest_node(people: People) -> None:
    columns = {"cluster": people.quota.cluster, "cpu_milli": 2000, "memory_mib": 3 * 1024}
    Node.objects.create(name="small", gpus={"TITANX": 2}, **columns)
    page = browser(people.owner).get("/start/jupyterlab").content.decode()
    for name, value in (("cpus", 2), ("memory", 3), ("gpus", 1)):
        assert re.search(rf'name="{name}" value="{value}"', page), name
    assert '<option value="TITANX"' in page
    Node.objects.update(gpus={})
    page = browser(people.owner).get("/start/jupyterlab").content.decode()
    assert 'name="gpus" value="0"' in page


@pytest.mark.parametrize(
    ("programs", "told"),
    [
        (["jupyter-lab"], "Installed on This machine."),
        (
            [],
            (
                "jupyter-lab is not installed on This machine. Install it for this session, or select "
                "an image."
            ),
        ),
        (None, "Installation on This machine is unknown."),
    ],
)
def test_start_page_shows_missing_program_before_start(
    people: People, programs: list[str] | None, told: str
) -> None:
    Node.objects.create(name="n", cluster=people.quota.cluster, programs=programs)
    assert told in seen(browser(people.owner).get("/start/jupyterlab"))


@pytest.mark.parametrize(
    ("template", "packages"),
    [
        ("jupyterlab", ("jupyterlab", "ipykernel")),
        ("jupyter", ("notebook", "ipykernel")),
        ("tensorboard", ("tensorboard",)),
    ],
)
def test_start_installs_programs_missing_on_the_cluster_for_this_session(
    people: People, template: str, packages: tuple[str, ...]
) -> None:
    Node.objects.create(name="n", cluster=people.quota.cluster, programs=[])
    client = browser(people.owner)
    page = client.get(f"/start/{template}").content.decode()
    assert re.search(r'value="install"\s+data-primary>Install for this session<', page)
    ran = make_job(State.SUCCEEDED, owner=people.owner, quota=people.quota)
    more = {"jobs": [ran.public_id]} if template == "tensorboard" else {}
    assert post(client, template, do="install", **more).status_code == 302
    job = Job.objects.get(name="lab")
    assert JobFile.objects.get(job=job).spec.requirements.packages == packages
    assert "Installing Python packages" in seen(client.get(opening(job, template)))


def test_start_without_a_package_to_install_offers_no_installation(people: People) -> None:
    Node.objects.create(name="n", cluster=people.quota.cluster, programs=[])
    page = seen(browser(people.owner).get("/start/vscode"))
    assert "code-server is not installed on This machine. Select an image that includes it." in page
    assert "Install for this session" not in page


# --- TensorBoard -------------------------------------------------------------------------------------------


def test_tensorboard_form_offers_and_accepts_only_own_started_jobs(people: People) -> None:
    mine = make_job(State.SUCCEEDED, owner=people.owner, quota=people.quota, name="my training")
    theirs = make_job(
        State.SUCCEEDED, owner=people.member, quota=people.quota, name="theirs", visibility="PUBLIC"
    )
    client = browser(people.owner)
    page = client.get("/start/tensorboard", {"job": [mine.public_id, theirs.public_id]}).content.decode()
    assert f'value="{mine.public_id}"' in page
    assert f'value="{theirs.public_id}"' not in page
    assert post(client, "tensorboard", jobs=[theirs.public_id]).status_code == 422
    assert post(client, "tensorboard").status_code == 422
    assert post(client, "tensorboard", jobs=[mine.public_id], key="k2").status_code == 302
    (mount,) = JobFile.objects.get(job__name="lab").spec.mounts
    assert mount.uri == f"job://{mine.public_id}/main/0"
    assert (mount.path, mount.read_only) == (f"/job/outputs/my_training-{mine.public_id}/main-0", True)


# --- on the way --------------------------------------------------------------------------------------------


def opening(job: Job, to: str = "lab") -> str:
    return reverse("job_opening", args=[job.public_id]) + (f"?to={to}" if to else "")


@pytest.fixture
def job(people: People) -> Job:
    return make_job(State.RUNNING, owner=people.owner, quota=people.quota, name="lab-job")


def test_opening_page_of_waiting_job_shows_reason_and_stop_button(people: People) -> None:
    job = make_job(State.QUEUED, owner=people.owner, quota=people.quota)
    page = seen(browser(people.owner).get(opening(job)))
    assert "Waiting in queue" in page
    assert reverse("job_stop", args=[job.public_id]) in page


def test_opening_page_shows_closed_port_reason_then_redirects_once_open(people: People, job: Job) -> None:
    endpoint = make_endpoint(replica_of(job), label="lab", ready=False, why="starting")
    write_log(job, b"loading the model\n")
    client = browser(people.owner)
    page = seen(client.get(opening(job)))
    assert "Starting: no process is listening yet." in page
    assert "loading the model" in page
    Endpoint.objects.filter(pk=endpoint.pk).update(ready=True, why="")
    there = reverse("endpoint_open", args=[endpoint.slug])
    assert client.get(opening(job))["Location"] == there
    assert client.get(opening(job), headers=fragment("opening"))["HX-Redirect"] == there
    assert client.get(opening(job, "other")).status_code == 200


def test_opening_page_of_shell_redirects_to_the_terminal(people: People, job: Job) -> None:
    there = f"/jobs/{job.public_id}/?tab=terminal"
    assert browser(people.owner).get(opening(job, ""))["Location"] == there
    replica = replica_of(job)
    replica.state = ReplicaState.WAITING
    replica.save()
    assert browser(people.owner).get(opening(job, "")).status_code == 200


def test_opening_page_of_ended_job_shows_state_and_end_of_log(people: People) -> None:
    job = make_job(State.FAILED, owner=people.owner, quota=people.quota)
    assert LogStream.objects.filter(attempt__job=job).exists()
    write_log(job, b"JupyterLab is not installed where this job runs\n")
    page = browser(people.owner).get(opening(job)).content.decode()
    assert "The job ended before it could be opened" in page
    assert "JupyterLab is not installed" in page
    assert 'hx-trigger="live:changed, every 2s"' not in page


@pytest.mark.parametrize(
    ("who", "status"), [("owner", 200), ("manager", 200), ("admin", 200), ("member", 403), ("stranger", 404)]
)
def test_opening_page_is_limited_to_users_with_enter_permission(
    people: People, job: Job, who: str, status: int
) -> None:
    assert browser(getattr(people, who)).get(opening(job)).status_code == status


def test_start_form_without_a_quota_is_shown_but_submission_is_refused(people: People) -> None:
    Quota.objects.update(accepts_jobs=False)
    assert browser(people.owner).get("/start/shell").status_code == 200
    assert post(browser(people.owner), "shell").status_code == 422


def test_tensorboard_form_reports_jobs_not_started_yet(people: People) -> None:
    waiting = make_job(State.PENDING, owner=people.owner, quota=people.quota, name="slow")
    Job.objects.filter(pk=waiting.pk).update(started_at=None)
    page = browser(people.owner).get(f"/start/tensorboard?job={waiting.public_id}")
    assert "slow has not started yet. You can select it here once it runs." in seen(page)
    others = browser(people.member).get(f"/start/tensorboard?job={waiting.public_id}")
    assert "slow" not in seen(others)
