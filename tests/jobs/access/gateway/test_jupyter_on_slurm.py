"""A notebook from its template on a real Slurm: allocated, on a port of its node, opened by the gateway."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.conf import settings as console

from jobs import submission
from jobs.dialects.document import Document
from jobs.jobtemplates import SHIPPED
from jobs.jobtemplates.answers import fill
from jobs.models import Endpoint, Job
from jobs.scheduling import reconcile
from jobs.states import State
from quotas.models import Admission, Quota, Role, User
from tests.factories import make_cluster, make_quota, make_user, make_workspace
from tests.jobs.access.gateway.kernels import execute
from tests.jobs.access.gateway.served import CONSOLE, Browser
from tests.jobs.backends.slurm_bench import TOKEN_COMMAND, by_rest
from tests.slurm import PATIENCE_S, Slurm
from tests.waiting import wait_for

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
"""Where the tests' own Jupyter is."""


@pytest.fixture
def owner(transactional_db: None) -> User:
    return make_user("alice")


@pytest.fixture(params=["commands", "rest"])
def quota(
    request: pytest.FixtureRequest, slurm: Slurm, owner: User, settings: LazySettings
) -> Iterator[Quota]:
    """Of the owner's workspace, on a cluster that Slurm schedules."""
    config = {"configuration": str(slurm.configuration)}
    config |= by_rest(slurm) if request.param == "rest" else {}
    settings.CONSOLE_SLURM_TOKEN_COMMAND = TOKEN_COMMAND
    cluster = make_cluster(backend="slurm", config=config, admission=Admission.ENGINE)
    (console.CONSOLE_HOME / "jobs").mkdir(mode=0o700, exist_ok=True)
    reconcile.take_inventory(cluster.pk)
    yield make_quota(make_workspace(members={owner: Role.DEVELOPER}), cluster)
    for job in Job.objects.filter(cluster=cluster):
        _end(owner, job)
    wait_for(slurm.ready, PATIENCE_S)


def _end(owner: User, job: Job) -> None:
    submission.stop(owner, job)
    wait_for(lambda: _looked_at(job).state not in (State.PENDING, State.RUNNING), 60, 0.2)


def _looked_at(job: Job) -> Job:
    reconcile.observe(job.cluster_id)
    job.refresh_from_db()
    return job


def begun(owner: User, quota: Quota) -> Job:
    """A job of the template's, as its form makes it."""
    answers: dict[str, Any] = {"name": "lab", "gpus": 1, "gpu_type": "a100", "cpus": 1, "memory": 1}
    file = json.loads(fill(SHIPPED["jupyterlab"], answers).text)
    file["Envs"] = {**file.get("Envs", {}), "PATH": PATH}
    job = submission.submit(owner, Document(json.dumps(file), "dlc"), keep_original=True).job
    reconcile.drain(quota.cluster_id)
    return job


def ready(job: Job) -> Endpoint | None:
    """What the notebook announced, once it answers."""
    state = _looked_at(job).state
    assert state in (State.PENDING, State.RUNNING), job.reason_code
    return Endpoint.objects.filter(replica__attempt__job=job, label="jupyterlab", ready=True).first()


def test_notebook_template_on_slurm_opens_and_runs_cell_on_node(
    new_browser: Callable[[], Browser], owner: User, quota: Quota
) -> None:
    job = begun(owner, quota)
    endpoint = wait_for(lambda: ready(job), 120, 0.5)
    assert endpoint.replica.node == "gpu1"
    visitor = new_browser()
    visitor.sign_in(owner)
    host = visitor.host(endpoint)
    answer, way = visitor.follow(CONSOLE, f"/endpoints/{endpoint.slug}/open")
    assert (answer.status_code, way[-1].startswith(f"{host}/lab")) == (200, True)
    sent = {"X-XSRFToken": visitor.cookies(host)["_xsrf"], "Origin": f"http://{host}:{visitor.port}"}
    started = visitor.request("POST", host, "/api/kernels", sent, json={"name": "python3"})
    assert started.status_code == 201, started.text
    look = "import os; print(6 * 7, os.environ['SLURMD_NODENAME'], os.environ['CUDA_VISIBLE_DEVICES'])"
    assert execute(visitor, host, started.json()["id"], look) == "42 gpu1 0\n"
