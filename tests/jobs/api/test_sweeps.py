"""Sweeps over the native API."""

from __future__ import annotations

import pytest

from jobs.models import Job
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
