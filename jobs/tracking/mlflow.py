"""The part of MLflow's REST API 2.0 that its client needs to log runs (mlflow.org/docs, REST API).

Requests are authenticated already: `Origin` is the job that asks.  Artifacts have no place here: the location
of a run's artifacts has a scheme that the client refuses before it sends any.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl

from jobs.models import TrackingExperiment, TrackingRun
from jobs.tracking import runs
from jobs.tracking.runs import DEFAULT, Metric, TrackingError
from jobs.training_metrics.series import Origin

ARTIFACTS: Final = "artifacts-are-not-stored://write-files-to-CHECKPOINT_DIR-or-the-work-folder-of-the-job"

STATUS: Final[Mapping[str, HTTPStatus]] = {
    "RESOURCE_DOES_NOT_EXIST": HTTPStatus.NOT_FOUND,
    "RESOURCE_LIMIT_EXCEEDED": HTTPStatus.TOO_MANY_REQUESTS,
}
"""HTTP statuses of error codes; that of all others is 400.  The client gives up at once on each."""

MOST_FOUND: Final = 1000
MOST_LOGGED: Final = 1000
"""Entries of each kind in one batch, as MLflow's own server has it."""

_DEFAULT_ID: Final = "0"
_LONGEST_NAME: Final = 250
_LONGEST_PARAMETER: Final = 6000
_LONGEST_TAG: Final = 8000
_MOST_INTEGER: Final = 2**53

Params: TypeAlias = Mapping[str, Any]
Operation: TypeAlias = Callable[[Origin, Params], Mapping[str, Any]]


def respond(
    operation: Operation, origin: Origin, query: bytes, body: bytes
) -> tuple[HTTPStatus, Mapping[str, Any]]:
    """Serve an operation for the job that asks; return the status and the object of the answer."""
    try:
        return HTTPStatus.OK, operation(origin, parse_request(query, body))
    except TrackingError as error:
        status = STATUS.get(error.code, HTTPStatus.BAD_REQUEST)
        return status, {"error_code": error.code, "message": error.message}


def parse_request(query: bytes, body: bytes) -> Params:
    """Return the parameters of a request, of its query and of its JSON object.  Raises TrackingError."""
    try:
        found = json.loads(body) if body else {}
        found = {**dict(parse_qsl(query.decode("ascii"))), **found}
        json.dumps(found, ensure_ascii=False).encode()  # half a character can't be stored
    except (ValueError, TypeError, RecursionError) as error:
        raise _invalid("The request is not a JSON object.") from error
    return found


# --- experiments -----------------------------------------------------------------------------------------


def create_experiment(origin: Origin, params: Params) -> Mapping[str, Any]:
    """Create an experiment."""
    name = _text(params, "name", _LONGEST_NAME)
    return {"experiment_id": str(runs.create_experiment(origin.job_id, name).pk)}


def get_experiment(origin: Origin, params: Params) -> Mapping[str, Any]:
    """Return an experiment by its ID."""
    wanted = _text(params, "experiment_id", _LONGEST_NAME)
    return {"experiment": _experiment(_find_experiment(origin, wanted))}


def get_experiment_by_name(origin: Origin, params: Params) -> Mapping[str, Any]:
    """Return an experiment by its name."""
    name = _text(params, "experiment_name", _LONGEST_NAME)
    if name == DEFAULT:
        return {"experiment": _experiment(None)}
    for each in runs.list_experiments(origin.job_id):
        if each.name == name:
            return {"experiment": _experiment(each)}
    raise TrackingError("RESOURCE_DOES_NOT_EXIST", f"This job has no experiment {name!r}.")


def search_experiments(origin: Origin, params: Params) -> Mapping[str, Any]:
    """Return the job's experiments."""
    _refuse_filter(params)
    found = [None, *runs.list_experiments(origin.job_id)]
    return {"experiments": [_experiment(each) for each in found]}


def _find_experiment(origin: Origin, wanted: str) -> TrackingExperiment | None:
    """Return an experiment of the job, None for the default one.  Raises TrackingError."""
    if wanted == _DEFAULT_ID:
        return None
    for each in runs.list_experiments(origin.job_id):
        if str(each.pk) == wanted:
            return each
    raise TrackingError("RESOURCE_DOES_NOT_EXIST", f"This job has no experiment with the ID {wanted!r}.")


def _experiment(row: TrackingExperiment | None) -> dict[str, Any]:
    return {
        "experiment_id": str(row.pk) if row else _DEFAULT_ID,
        "name": row.name if row else DEFAULT,
        "artifact_location": ARTIFACTS,
        "lifecycle_stage": "active",
    }


# --- runs ------------------------------------------------------------------------------------------------


def create_run(origin: Origin, params: Params) -> Mapping[str, Any]:
    """Create a run."""
    experiment = _find_experiment(
        origin, _text(params, "experiment_id", _LONGEST_NAME, default=_DEFAULT_ID) or _DEFAULT_ID
    )
    tags = _pairs(params.get("tags"), _LONGEST_TAG)
    name = _text(params, "run_name", _LONGEST_NAME, default="") or tags.get("mlflow.runName", "")
    start = _integer(params, "start_time")
    run = runs.create_run(origin.job_id, experiment, name[:_LONGEST_NAME], start, tags)
    return {"run": _run(run)}


def get_run(origin: Origin, params: Params) -> Mapping[str, Any]:
    """Return a run with its parameters, tags, and the last value of each metric."""
    return {"run": _run(runs.find_run(origin.job_id, _run_id(params)))}


def update_run(origin: Origin, params: Params) -> Mapping[str, Any]:
    """Change the status, the end or the name of a run."""
    changes: dict[str, str | int] = {}
    if status := _text(params, "status", 20, default=""):
        if status not in TrackingRun.Status.values:
            raise _invalid(f"No status of a run: {status!r}.")
        changes["status"] = status
    if params.get("end_time") is not None:
        changes["end_time"] = _integer(params, "end_time")
    if name := _text(params, "run_name", _LONGEST_NAME, default=""):
        changes["name"] = name
    run = runs.update_run(origin.job_id, _run_id(params), changes)
    return {"run_info": _run(run)["info"]}


def search_runs(origin: Origin, params: Params) -> Mapping[str, Any]:
    """Return the job's runs, the newest first, of these experiments if any are named."""
    _refuse_filter(params)
    wanted = _list(params.get("experiment_ids"), runs.MOST_EXPERIMENTS + 1)
    found = TrackingRun.objects.filter(job_id=origin.job_id).order_by("-pk")
    rows = [row for row in found if not wanted or _experiment_id(row) in wanted]
    return {"runs": [_run(row) for row in rows[: _integer(params, "max_results", MOST_FOUND)]]}


def _experiment_id(row: TrackingRun) -> str:
    return str(row.experiment_id) if row.experiment_id else _DEFAULT_ID


def _run(row: TrackingRun) -> dict[str, Any]:
    info = {
        "run_id": row.run_id,
        "run_uuid": row.run_id,
        "run_name": row.name,
        "experiment_id": _experiment_id(row),
        "user_id": row.tags.get("mlflow.user", ""),
        "status": row.status,
        "start_time": row.start_time,
        "artifact_uri": ARTIFACTS,
        "lifecycle_stage": "active",
        **({"end_time": row.end_time} if row.end_time is not None else {}),
    }
    data = {
        "metrics": [{"key": name, **stored} for name, stored in row.metrics.items()],
        "params": [{"key": name, "value": value} for name, value in row.parameters.items()],
        "tags": [{"key": name, "value": value} for name, value in row.tags.items()],
    }
    return {"info": info, "data": data, "inputs": {}}


# --- what a run logs -------------------------------------------------------------------------------------


def log_metric(origin: Origin, params: Params) -> Mapping[str, Any]:
    """Log one value of a metric."""
    runs.log(origin, _run_id(params), [_metric(params)])
    return {}


def log_parameter(origin: Origin, params: Params) -> Mapping[str, Any]:
    """Log a parameter."""
    runs.log(origin, _run_id(params), parameters=_pairs([params], _LONGEST_PARAMETER))
    return {}


def set_tag(origin: Origin, params: Params) -> Mapping[str, Any]:
    """Set a tag."""
    runs.log(origin, _run_id(params), tags=_pairs([params], _LONGEST_TAG))
    return {}


def log_batch(origin: Origin, params: Params) -> Mapping[str, Any]:
    """Log metrics, parameters and tags, all or none."""
    metrics = [_metric(each) for each in _list(params.get("metrics"), MOST_LOGGED)]
    parameters = _pairs(params.get("params"), _LONGEST_PARAMETER)
    runs.log(origin, _run_id(params), metrics, parameters, _pairs(params.get("tags"), _LONGEST_TAG))
    return {}


OPERATIONS: Final[Mapping[tuple[str, str], Operation]] = {
    ("POST", "/api/2.0/mlflow/experiments/create"): create_experiment,
    ("GET", "/api/2.0/mlflow/experiments/get"): get_experiment,
    ("GET", "/api/2.0/mlflow/experiments/get-by-name"): get_experiment_by_name,
    ("POST", "/api/2.0/mlflow/experiments/search"): search_experiments,
    ("POST", "/api/2.0/mlflow/runs/create"): create_run,
    ("GET", "/api/2.0/mlflow/runs/get"): get_run,
    ("POST", "/api/2.0/mlflow/runs/update"): update_run,
    ("POST", "/api/2.0/mlflow/runs/search"): search_runs,
    ("POST", "/api/2.0/mlflow/runs/log-metric"): log_metric,
    ("POST", "/api/2.0/mlflow/runs/log-parameter"): log_parameter,
    ("POST", "/api/2.0/mlflow/runs/set-tag"): set_tag,
    ("POST", "/api/2.0/mlflow/runs/log-batch"): log_batch,
}
"""Operations by method and path below the tracking URI; all raise TrackingError."""


# --- values of requests ----------------------------------------------------------------------------------


def _run_id(params: Params) -> str:
    return _text(params, "run_id", _LONGEST_NAME, default="") or _text(params, "run_uuid", _LONGEST_NAME)


def _text(params: Params, name: str, most: int, default: str | None = None) -> str:
    value = params.get(name)
    value = default if value is None else value
    if not isinstance(value, str) or len(value) > most or "\0" in value or (default is None and not value):
        raise _invalid(f"{name} must be a text of at most {most} characters.")
    return value


def _integer(params: Params, name: str, default: int = 0) -> int:
    value = params.get(name)
    try:
        number = default if value is None else int(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise _invalid(f"{name} must be a whole number.") from error
    if abs(number) > _MOST_INTEGER:
        raise _invalid(f"{name} is too large.")
    return number


def _metric(params: Any) -> Metric:
    if not isinstance(params, dict):
        raise _invalid("A metric must be an object.")
    name = _text(params, "key", _LONGEST_NAME)
    try:
        value = float(params.get("value", 0))
    except (TypeError, ValueError, OverflowError) as error:
        raise _invalid(f"Metric {name!r} needs a number as its value.") from error
    if not name.isprintable():
        raise _invalid("The name of a metric can't have control characters.")
    return Metric(name, value, _integer(params, "timestamp"), _integer(params, "step"))


def _pairs(given: Any, most: int) -> dict[str, str]:
    pairs = _list(given, MOST_LOGGED)
    if not all(isinstance(each, dict) for each in pairs):
        raise _invalid("Parameters and tags must be objects.")
    return {_text(each, "key", _LONGEST_NAME): _text(each, "value", most, default="") for each in pairs}


def _list(given: Any, most: int) -> Sequence[Any]:
    found = [] if given is None else given
    if not isinstance(found, list) or len(found) > most:
        raise _invalid(f"A list must have at most {most} entries.")
    return found


def _refuse_filter(params: Params) -> None:
    if params.get("filter"):
        raise _invalid("Filters are not supported: search without one.")


def _invalid(text: str) -> TrackingError:
    return TrackingError("INVALID_PARAMETER_VALUE", text)
