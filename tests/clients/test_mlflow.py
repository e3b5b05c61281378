"""A job's program logs runs by MLflow's own client, unchanged, at the address that the job is given."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from django.conf import LazySettings

from jobs import submission, training_metrics
from jobs.backends.local import machine
from jobs.dialects.document import Document
from jobs.models import Job, TrackingRun, TrainingSeries
from jobs.node.network.service import SOCKET
from jobs.states import FINAL, State
from jobs.training_metrics import results
from quotas.models import Cluster, User
from tests import role_jobs
from tests.clients import environments
from tests.factories import make_cluster
from tests.jobs.client.conftest import person, worker
from tests.serving import job_service, web_server
from tests.waiting import wait_for

__all__ = ["person", "worker"]

pytestmark = pytest.mark.once

LOGS: Final = """
import json, mlflow
from mlflow.entities import Metric, Param, RunTag
mlflow.set_experiment("digits")
client = mlflow.MlflowClient()
with mlflow.start_run(run_name="first", tags={"team": "vision"}) as run:
    mlflow.log_params({"lr": 0.1, "layers": 3})
    mlflow.log_param("optimizer", "adam")
    for step in range(3):
        mlflow.log_metric("loss", 1 / (step + 1), step=step)
    mlflow.log_metrics({"val/acc": 0.5, "broken": float("nan")}, step=2)
    mlflow.set_tag("stage", "trial")
    late = [Metric("val/acc", 0.75, 1, 3)]
    client.log_batch(run.info.run_id, late, [Param("seed", "7")], [RunTag("a", "b")])
    refused = []
    for attempt in (lambda: mlflow.log_param("lr", 0.2), lambda: mlflow.log_text("weights", "model.txt")):
        try:
            attempt()
        except Exception as error:
            refused.append(str(error))
found = client.get_run(run.info.run_id)
print(json.dumps({
    "experiment": client.get_experiment_by_name("digits").experiment_id == found.info.experiment_id,
    "status": found.info.status,
    "params": found.data.params,
    "metrics": {name: repr(value) for name, value in found.data.metrics.items()},
    "tags": {name: found.data.tags[name] for name in ("team", "stage", "a", "mlflow.runName")},
    "runs": [each.info.run_id == run.info.run_id for each in mlflow.search_runs(
        search_all_experiments=True, output_format="list")],
    "refused": refused,
}), flush=True)
"""


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """MLflow's client, for the job's user."""
    environment = environments.python("mlflow").parents[1]
    (source,) = environment.glob("lib/python*/site-packages")
    unused = shutil.ignore_patterns("pip*", "setuptools*")
    return Path(shutil.copytree(source, tmp_path / "packages", ignore=unused))


@pytest.fixture
def cluster(
    transactional_db: None,
    settings: LazySettings,
    packages: Path,
    backend: str,
    request: pytest.FixtureRequest,
) -> Iterator[Cluster]:
    """A cluster whose jobs ask in their own network, or at the console's web address."""
    if backend == "slurm":
        slurm = request.getfixturevalue("slurm")
        with web_server() as url:
            yield role_jobs.make_slurm_cluster(slurm, console_url=url, allow_plain=True)
        return
    if lacking := machine.network_lacks(machine.detect_isolation("python3")):
        pytest.skip(f"networks of jobs' own need {', '.join(lacking)}")
    settings.CONSOLE_LOCAL = {"gpus": {}, "engine": "none", "show": [str(packages)]}
    yield make_cluster("local", config={"network": "own"})


@pytest.mark.parametrize("backend", ["local", "slurm"])
def test_mlflow_client_logs_runs_unchanged(
    backend: str, worker: None, person: User, packages: Path, settings: LazySettings
) -> None:
    program = (
        f"export PYTHONPATH={packages} MLFLOW_DISABLE_TELEMETRY=true; exec python3 -c {shlex.quote(LOGS)}"
    )
    role = {"Type": "Worker", "PodCount": 1, "ResourceConfig": {"CPU": "1", "Memory": "1Gi"}}
    body = {"DisplayName": "track", "JobType": "PyTorchJob", "JobSpecs": [role], "UserCommand": program}
    with job_service(settings.CONSOLE_HOME / SOCKET):
        job = submission.submit(person, Document(json.dumps(body))).job
        wait_for(lambda: State(Job.objects.get(pk=job.pk).state) in FINAL, 90)
    logs = Path(settings.CONSOLE_HOME, "jobs", job.public_id, "1").rglob("logs/*.output")
    text = "".join(each.read_text() for each in logs)
    assert Job.objects.get(pk=job.pk).state == State.SUCCEEDED, text[-3000:]
    told = json.loads(next(line for line in text.splitlines() if line.startswith("{")))
    again, artifact = told.pop("refused")
    assert "'lr' already has the value '0.1'" in again
    assert "CHECKPOINT_DIR" in artifact
    assert told == {
        "experiment": True,
        "status": "FINISHED",
        "params": {"lr": "0.1", "layers": "3", "optimizer": "adam", "seed": "7"},
        "metrics": {"loss": repr(1 / 3), "val/acc": "0.75", "broken": "nan"},
        "tags": {"team": "vision", "stage": "trial", "a": "b", "mlflow.runName": "first"},
        "runs": [True],
    }
    training_metrics.collect()
    shown = {each.name: (each.last, each.last_step, each.best) for each in results.list_results(job)}
    assert shown == {"loss": (1 / 3, 2, 1 / 3), "val/acc": (0.75, 3, 0.75)}
    assert {row.source for row in TrainingSeries.objects.all()} == {TrainingSeries.Source.MLFLOW}
    assert TrackingRun.objects.get().job == job
