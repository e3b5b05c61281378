"""MLflow's API as jobs may use it: each its own runs alone, to limits, with MLflow's errors."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from jobs.models import Job, TrackingRun, TrainingSeries
from jobs.states import State
from jobs.tracking import runs
from tests.factories import attempt_of, make_job
from tests.jobs.access.test_job_service import ask
from tests.jobs.web.conftest import People, browser, people, seen

__all__ = ["people"]

pytestmark = pytest.mark.django_db(transaction=True)


def call(job: Job, name: str, method: str = "POST", /, **params: Any) -> tuple[int, Any]:
    path = f"/v1/mlflow/api/2.0/mlflow/{name}"
    identity = {"attempt": attempt_of(job).key, "replica": "0"}
    if method == "GET":
        query = "&".join(f"{key}={value}" for key, value in params.items())
        return ask(identity, f"{path}?{query}", method)
    return ask(identity, path, method, body=json.dumps(params).encode())


def begin(job: Job) -> str:
    status, body = call(job, "runs/create", experiment_id="0", start_time=1, run_name="first")
    assert status == 200
    return str(body["run"]["info"]["run_id"])


def test_job_reads_and_changes_its_own_runs_alone() -> None:
    mine, other = make_job(State.RUNNING), make_job(State.RUNNING)
    run = begin(mine)
    made = call(mine, "experiments/create", name="own")[1]["experiment_id"]
    for status, body in (
        call(other, "runs/get", "GET", run_id=run),
        call(other, "runs/log-metric", run_id=run, key="loss", value=1),
        call(other, "runs/update", run_id=run, status="FINISHED"),
        call(other, "experiments/get", "GET", experiment_id=made),
        call(other, "experiments/get-by-name", "GET", experiment_name="own"),
        call(other, "runs/create", experiment_id=made),
    ):
        assert (status, body["error_code"]) == (404, "RESOURCE_DOES_NOT_EXIST")
    assert call(other, "runs/search") == (200, {"runs": []})
    assert not TrainingSeries.objects.exists()
    assert TrackingRun.objects.get().status == "RUNNING"


WRONG: Final[list[tuple[str, dict[str, Any], str]]] = [
    ("runs/log-metric", {"key": "loss", "value": "high"}, "INVALID_PARAMETER_VALUE"),
    ("runs/log-metric", {"key": "x" * 251, "value": 1}, "INVALID_PARAMETER_VALUE"),
    ("runs/log-metric", {"key": "a\u001b[2J", "value": 1}, "INVALID_PARAMETER_VALUE"),
    ("runs/log-metric", {"key": "loss", "value": 1, "step": 10**30}, "INVALID_PARAMETER_VALUE"),
    ("runs/log-parameter", {"key": "lr", "value": "x" * 6001}, "INVALID_PARAMETER_VALUE"),
    ("runs/log-batch", {"metrics": [1]}, "INVALID_PARAMETER_VALUE"),
    ("runs/log-batch", {"tags": {"a": "b"}}, "INVALID_PARAMETER_VALUE"),
    ("runs/log-batch", {"params": [{"key": f"p{n}"} for n in range(201)]}, "RESOURCE_LIMIT_EXCEEDED"),
    (
        "runs/log-batch",
        {"params": [{"key": f"p{n}", "value": "x" * 6000} for n in range(50)]},
        "RESOURCE_LIMIT_EXCEEDED",
    ),
    ("runs/update", {"status": "LOST"}, "INVALID_PARAMETER_VALUE"),
    ("runs/search", {"filter": "params.lr = '1'"}, "INVALID_PARAMETER_VALUE"),
    ("experiments/create", {"name": "Default"}, "RESOURCE_ALREADY_EXISTS"),
]


def test_wrong_request_is_refused_with_a_code_and_stores_nothing() -> None:
    job = make_job(State.RUNNING)
    run = begin(job)
    for name, params, code in WRONG:
        status, body = call(job, name, **{"run_id": run, **params})
        assert (status in {400, 404, 429}, body["error_code"]) == (True, code), params
    row = TrackingRun.objects.get()
    assert (row.parameters, row.metrics, row.tags, row.status) == ({}, {}, {}, "RUNNING")
    assert not TrainingSeries.objects.exists()


def test_body_that_is_no_object_and_too_many_runs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    job = make_job(State.RUNNING)
    identity = {"attempt": attempt_of(job).key, "replica": "0"}
    for body in (b"[1]", b"{", b'"\\ud800"', b'{"a": "\\ud800"}', b"[" * 100_000):
        status, told = ask(identity, "/v1/mlflow/api/2.0/mlflow/runs/create", "POST", body=body)
        assert (status, told["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
    monkeypatch.setattr(runs, "MOST_RUNS", 1)
    begin(job)
    assert call(job, "runs/create")[1]["error_code"] == "RESOURCE_LIMIT_EXCEEDED"


def test_parameters_are_shown_at_metrics_and_in_a_comparison_to_readers(people: People) -> None:
    jobs = [make_job(State.RUNNING, owner=people.owner, quota=people.quota) for _each in range(2)]
    for job, rate in zip(jobs, ("0.125", "<b>"), strict=True):
        call(job, "runs/log-parameter", run_id=begin(job), key="lr", value=rate)
    ids = {"id": [job.public_id for job in jobs]}
    client = browser(people.owner)
    assert client.get("/jobs/compare", ids).context["parameters"] == [("lr", ["0.125", "<b>"])]
    page = client.get(f"/jobs/{jobs[1].public_id}/?tab=metrics")
    assert "&lt;b&gt;" in page.content.decode()
    assert "0.125" in seen(client.get(f"/jobs/{jobs[0].public_id}/?tab=metrics"))
    assert "0.125" not in seen(browser(people.member).get("/jobs/compare", ids))
