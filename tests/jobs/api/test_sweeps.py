"""Sweeps over the native API."""

from __future__ import annotations

import pytest

from jobs.models import Job, TrainingSeries
from jobs.training_metrics import series
from jobs.training_metrics.output import Sample
from tests.jobs.api.conftest import People, api, body_of, file, problem

BODY = {"file": file(), "grid": {"env.LR": [0.1, 0.2]}, "at_once": 1}


def test_sweep_is_accepted_read_changed_and_stopped(people: People) -> None:
    owner = api(people.owner)
    made = body_of(owner.post("sweeps", BODY), 201)
    assert (made["name"], made["at_once"], made["states"]) == ("hello", 1, {"QUEUED": 2})
    assert [run["values"] for run in made["runs"]] == [{"env.LR": 0.1}, {"env.LR": 0.2}]
    address = f"sweeps/{made['id']}"
    assert body_of(owner.get(address))["runs"][1]["job"]["name"] == "hello-2"
    assert body_of(owner.post(f"{address}/stop", {}), 202)["states"] == {"STOPPED": 2}
    assert body_of(owner.post(f"{address}/again", {}), 200)["states"] == {"STOPPED": 2}


def test_sweep_with_a_wrong_value_reports_problems_as_for_a_job(people: People) -> None:
    told = problem(api(people.owner).post("sweeps", {**BODY, "grid": {"priority": [99]}}))
    assert [found["code"] for found in told["problems"]] == ["sweep_wrong_value"]
    assert Job.objects.count() == 0


@pytest.mark.parametrize("wrong", [{"at_once": 0}, {"at_once": 201}, {"grid": []}, {"combinations": [1]}])
def test_sweep_request_of_invalid_shape_is_refused(people: People, wrong: dict[str, object]) -> None:
    assert problem(api(people.owner).post("sweeps", {**BODY, **wrong}))["status"] == 400


def test_sweep_hides_values_from_members_and_all_from_strangers(people: People) -> None:
    made = body_of(api(people.owner).post("sweeps", BODY), 201)
    seen = body_of(api(people.member).get(f"sweeps/{made['id']}"))
    assert [run["values"] for run in seen["runs"]] == [None, None]
    assert api(people.stranger).get(f"sweeps/{made['id']}").status_code == 404
    assert api(people.member).post(f"sweeps/{made['id']}/stop", {}).status_code == 403


ARRAY = "#!/bin/bash\n#SBATCH -J sim -c1 --mem=1G\n#SBATCH -a 1-9:2%2\n\necho $SLURM_ARRAY_TASK_ID\n"


def test_sweep_is_created_from_a_script_with_an_array(people: People) -> None:
    owner = api(people.owner)
    made = body_of(owner.post("sweeps", {"file": ARRAY}), 201)
    assert (made["name"], made["at_once"], made["states"]) == ("sim", 2, {"QUEUED": 5})
    assert made["runs"][4]["values"] == {"env.SLURM_ARRAY_TASK_ID": 9}
    assert made["runs"][4]["job"]["name"] == "sim-9"
    told = body_of(owner.get(f"sweeps/{made['id']}/file"))
    assert told == {"dialect": "sbatch", "text": ARRAY}


def test_job_endpoint_refuses_an_array_and_names_the_sweep_endpoint(people: People) -> None:
    told = problem(api(people.owner).post("jobs", {"file": ARRAY}))
    [found] = told["problems"]
    assert (found["code"], found["line"], found["column"]) == ("array_is_sweep", 3, 12)
    assert "5 jobs, at most 2 at a time" in found["message"]
    assert "POST /api/console/v1/sweeps" in found["message"]
    assert Job.objects.count() == 0


def test_preview_shows_the_number_of_jobs_in_an_array(people: People) -> None:
    found = body_of(api(people.owner).post("preview", {"file": ARRAY}))["preview"]
    assert (found["jobs"], found["at_once"]) == (5, 2)


def test_sweep_file_of_an_array_is_refused_without_read_access(people: People) -> None:
    made = body_of(api(people.owner).post("sweeps", {"file": ARRAY}), 201)
    address = f"sweeps/{made['id']}/file"
    told = [api(who).get(address).status_code for who in (people.member, people.stranger)]
    assert told == [403, 404]
    plain = body_of(api(people.owner).post("sweeps", BODY), 201)
    assert api(people.owner).get(f"sweeps/{plain['id']}/file").status_code == 404


RANDOM = {
    "parameters": {
        "env.LR": {"distribution": "uniform", "low": 0, "high": 1},
        "env.OPT": {"distribution": "choice", "values": ["adam", "sgd"]},
    },
    "trials": 3,
}
OBJECTIVE = {"metric": "cost", "goal": "min"}


def test_random_search_with_an_objective_shows_results_to_readers_alone(people: People) -> None:
    owner = api(people.owner)
    made = body_of(owner.post("sweeps", {"file": file(), "random": RANDOM, "objective": OBJECTIVE}), 201)
    assert made["objective"] == {**OBJECTIVE, "stop_after": None, "stop_jobs": 3}
    assert len({str(run["values"]) for run in made["runs"]}) == 3
    for value, run in enumerate(made["runs"], 1):
        job = Job.objects.get(public_id=run["job"]["id"])
        origin = series.Origin(job.pk, "main", 1, 1, TrainingSeries.Source.OUTPUT)
        series.append(origin, [Sample("cost", "step", 1, value + 1), Sample("cost", "step", 2, value)])
    runs = body_of(owner.get(f"sweeps/{made['id']}"))["runs"]
    assert [(run["best"], run["last"], run["is_best"]) for run in runs] == [
        (1, 1, True),
        (2, 2, False),
        (3, 3, False),
    ]
    hidden = body_of(api(people.member).get(f"sweeps/{made['id']}"))
    assert hidden["objective"] is None
    assert {(run["best"], run["is_best"]) for run in hidden["runs"]} == {(None, False)}


@pytest.mark.parametrize(
    "wrong",
    [
        {"random": {**RANDOM, "trials": 0}},
        {"random": {**RANDOM, "parameters": {"env.LR": {"distribution": "log_uniform", "high": 1}}}},
        {"random": RANDOM, "combinations": [{"env.LR": 1}]},
        {"random": RANDOM, "grid": {"env.LR": [1]}},
        {"random": RANDOM, "objective": {"metric": "cost", "goal": "most"}},
    ],
)
def test_wrong_random_search_is_refused(people: People, wrong: dict[str, object]) -> None:
    assert problem(api(people.owner).post("sweeps", {"file": file(), **wrong}))["status"] == 400
    assert Job.objects.count() == 0


def test_sweep_takes_the_lines_of_new_job(people: People) -> None:
    lines = "priority = 1, 2, 3\ntrials: 2\nobjective: min val_loss\nearly_stop: 100 4"
    given = {"file": file(), "parameters": lines, "at_once": 1}
    made = body_of(api(people.owner).post("sweeps", given), 201)
    assert (len(made["runs"]), made["at_once"]) == (2, 1)
    assert made["objective"] == {"metric": "val_loss", "goal": "min", "stop_after": 100.0, "stop_jobs": 4}
    for wrong, told in (
        ({"parameters": "priority"}, "Line 1 is not a parameter with values."),
        ({"grid": {"priority": [1]}}, "Exactly one of these is required: parameters, grid"),
    ):
        [found] = problem(api(people.owner).post("sweeps", {**given, **wrong}))["problems"]
        assert found["pointer"] == "/parameters"
        assert found["message"].startswith(told)
