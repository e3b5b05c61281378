"""Training metrics of jobs on a real Slurm: by MLflow's API, and from event files in the shared folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client

from jobs import submission, training_metrics
from jobs.access.attempt_tokens import Purpose, make_token
from jobs.backends.base import Person, Submission
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.script import job_script
from jobs.dialects.base import Parsed
from jobs.dialects.document import Document
from jobs.logs import log_store
from jobs.models import Job, LogStream, TrackingRun, TrainingSeries
from jobs.scheduling import reconcile
from jobs.spec import JobSpec, Resources, RoleSpec
from jobs.states import TERMINAL, State
from jobs.training_metrics import collection
from quotas.models import Admission, Cluster, Quota, Role, User
from tests.factories import attempt_of, make_job, make_user, make_workspace
from tests.jobs.backends import curves
from tests.serving import web_server
from tests.slurm import Slurm
from tests.waiting import wait_for

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

LOGS = """\
cp -r {curve} .
python3 - <<'END'
import json, os, urllib.request
def ask(name, **params):
    url = os.environ["MLFLOW_TRACKING_URI"] + "/api/2.0/mlflow/" + name
    headers = {{"Authorization": "Bearer " + os.environ["MLFLOW_TRACKING_TOKEN"]}}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(params).encode(), headers)) as answer:
        return json.load(answer)
run = ask("runs/create", experiment_id="0")["run"]["info"]["run_id"]
ask("runs/log-parameter", run_id=run, key="lr", value="0.1")
ask("runs/log-metric", run_id=run, key="reward", value=0.5, step=3)
END
echo $MLFLOW_TRACKING_TOKEN
"""


@pytest.fixture
def owner(slurm: Slurm, settings: LazySettings, tmp_path: Path) -> Iterator[User]:
    """Of a quota on a cluster whose nodes reach the console."""
    shared = tmp_path / "shared"
    shared.mkdir()
    settings.CONSOLE_SLURM_FOLDER = str(shared)
    with web_server() as url:
        config = {"configuration": str(slurm.configuration), "allow_plain": True, "console_url": url}
        cluster = Cluster.objects.create(
            slug="hpc", name="HPC", backend="slurm", config=config, admission=Admission.ENGINE
        )
        made = make_user("alice")
        workspace = make_workspace("vision", members={made: Role.DEVELOPER})
        Quota.objects.create(workspace=workspace, cluster=cluster, slug="all", name="All")
        reconcile.take_inventory(cluster.pk)
        yield made
    wait_for(slurm.ready)


def finish(owner: User, command: str) -> Job:
    """Submit a job of two roles whose second one runs the command, and follow it to its end."""
    size = Resources(cpu_milli=1000, memory_mib=64)
    roles = (
        RoleSpec(name="ps", command="true", resources=size),
        RoleSpec(name="worker", command=command, resources=size),
    )
    parsed = Document("{}", "openpai-v1").with_parsed(Parsed(JobSpec(name="train", roles=roles), text="{}"))
    job = submission.store(owner, parsed, Quota.objects.get())
    reconcile.drain(job.cluster_id)

    def is_over() -> bool:
        reconcile.observe(job.cluster_id)
        job.refresh_from_db()
        return State(job.state) in TERMINAL

    wait_for(is_over, 60, interval=0.2)
    return job


def output(job: Job) -> str:
    stream = LogStream.objects.get(attempt__job=job, role="worker", index=0)
    return log_store.read(stream, 0, 1 << 20).data.decode()


def test_slurm_job_logs_runs_and_event_files(
    owner: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collection, "SEARCH_EVERY", 1)
    curves.write_curve(tmp_path / "curve")
    job = finish(owner, LOGS.format(curve=tmp_path / "curve"))
    assert job.state == State.SUCCEEDED, output(job)
    assert set(output(job)) <= {"*", "\n"}, "the token is masked in logs"
    assert TrackingRun.objects.get().parameters == {"lr": "0.1"}
    while training_metrics.collect():
        pass
    found = TrainingSeries.objects.order_by("name").values_list("name", "role", "source", "last")
    assert list(found) == [
        ("reward", "worker", "mlflow", 0.5),
        (curves.TAG, "worker", "tensorboard", 4321.0),
    ]


@pytest.mark.parametrize("own", [{}, {"MLFLOW_TRACKING_URI": "http://mlflow.example.org"}])
@pytest.mark.parametrize("url", ["https://console.example.org", "http://127.0.0.1:8000"])
def test_script_names_the_console_unless_it_is_out_of_reach_or_the_job_has_a_server(
    own: dict[str, str], url: str
) -> None:
    config = SlurmConfig.from_settings(Path("/tmp"), {"usual_console_url": url})
    size = Resources(cpu_milli=1000, memory_mib=64)
    spec = JobSpec(name="a", roles=(RoleSpec(name="m", command="c", env=own, resources=size),))
    sent = Submission("b1-a-1", "a", 1, spec, Person("alice", 7), tracking_token="token")
    text = job_script.render(sent, None, config)
    is_named = url.startswith("https:") and not own
    assert ("MLFLOW_TRACKING_URI=https://console.example.org/mlflow/b1-a-1/" in text) == is_named
    assert "=token" not in text, "it is in a file of its own"


def test_tracking_address_serves_the_attempt_of_the_token_alone(client: Client) -> None:
    mine, other = (attempt_of(make_job(State.RUNNING)) for _each in range(2))

    def create(key: str, token: str, name: str = "runs/create", position: int = 0) -> tuple[int, Any]:
        answer = client.post(
            f"/mlflow/{key}/{position}/api/2.0/mlflow/{name}",
            json.dumps({"experiment_id": "0"}),
            content_type="application/json",
            headers={"Authorization": f"Bearer {token}"} if token else {},
        )
        return answer.status_code, answer.json()

    token = make_token(mine.key, Purpose.TRACKING)
    assert create(mine.key, token)[0] == 200
    for wrong in (
        "",
        "x",
        make_token(other.key, Purpose.TRACKING),
        make_token(mine.key, Purpose.ROLE_CREDENTIALS),
    ):
        assert create(mine.key, wrong) == (401, {"error": "Unauthorized"})
    assert create(mine.key, token, "registered-models/create") == (404, {"error": "Not Found"})
    assert create(mine.key, token, position=99) == (403, {"error": "Forbidden"})
    assert create(mine.key, token, "runs/get")[0] == 404, "another method"
    Job.objects.filter(pk=mine.job_id).update(state=State.SUCCEEDED)
    assert create(mine.key, token) == (403, {"error": "Forbidden"})
    assert TrackingRun.objects.count() == 1
