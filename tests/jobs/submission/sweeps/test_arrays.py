"""Job arrays: an sbatch script with `--array` is a sweep, whose jobs have what Slurm gives a task."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs import submission
from jobs.api.native.job_files import render
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.lifecycle import transitions
from jobs.models import Job, JobFile, Sweep
from jobs.scheduling import reconcile
from jobs.states import TERMINAL, Reason, ReasonCode, State
from jobs.submission import Conflict
from jobs.submission.checks import preview
from jobs.submission.sweeps import arrays, commands
from jobs.submission.sweeps.commands import SweepRequest
from quotas.models import User
from tests.jobs.conftest import Place, attempt_of
from tests.jobs.engine import MemoryEngine

pytestmark = pytest.mark.django_db

TEXT = """#!/bin/bash
#SBATCH -J sim -c1 --mem=100M -t 10
# which of them
#SBATCH --array=0-9:3%2
#SBATCH -o log/%A_%a.out --export=ALL,SEED=1,API_TOKEN=hush

# not an option
echo $SLURM_ARRAY_TASK_ID
"""


@pytest.fixture(autouse=True)
def _engine(engine: MemoryEngine) -> None:
    """Every test has an engine that takes what it is given."""


def submitted(place: Place, text: str = TEXT, at_once: int | None = None) -> Sweep:
    return commands.submit(place.owner, SweepRequest(Document(text), at_once=at_once))[0]


def files(sweep: Sweep) -> list[JobFile]:
    return [JobFile.objects.get(job=run.job) for run in commands.latest(sweep)]


def test_array_index_becomes_job_with_slurm_variables(place: Place) -> None:
    sweep = submitted(place)
    assert (sweep.name, sweep.at_once, sweep.names) == ("sim", 2, ["env.SLURM_ARRAY_TASK_ID"])
    runs = commands.latest(sweep)
    assert [run.job.name for run in runs] == ["sim-0", "sim-3", "sim-6", "sim-9"]
    assert [run.values for run in runs] == [{"env.SLURM_ARRAY_TASK_ID": index} for index in (0, 3, 6, 9)]
    number = str(arrays.number_of(sweep.public_id))
    same = {"COUNT": "4", "MIN": "0", "MAX": "9", "STEP": "3"}
    for index, file in zip((0, 3, 6, 9), files(sweep), strict=True):
        assert file.spec.env == {
            "SEED": "1",
            "SLURM_ARRAY_JOB_ID": number,
            **{f"SLURM_ARRAY_TASK_{name}": value for name, value in same.items()},
            "SLURM_ARRAY_TASK_ID": str(index),
        }
        assert file.spec.roles[0].command == "# not an option\necho $SLURM_ARRAY_TASK_ID"
        assert "--array" not in file.text
        assert f"-o log/{number}_{index}.out" in file.text
        assert "# which of them\n" in file.text


def test_array_number_exceeds_every_slurm_job_id(place: Place) -> None:
    number = arrays.number_of(submitted(place).public_id)
    assert 67_108_863 < number < 2**32, "above MaxJobId, and still a number for Slurm's programs"


def test_array_script_secret_is_stored_per_job_and_masked_in_files(place: Place) -> None:
    sweep = submitted(place)
    assert "hush" not in sweep.file
    for file in files(sweep):
        assert "hush" not in file.text
        secret = file.job.secrets.get()
        assert (secret.name, secret.reveal()) == ("API_TOKEN", "hush")


def test_array_of_python_script_gets_index_variable(place: Place) -> None:
    text = '#!/usr/bin/env python3\n#SBATCH -a 1-2 -c1 --mem=1G\nimport os\nprint(os.environ["X"])\n'
    found = files(submitted(place, text))
    assert [file.spec.env["SLURM_ARRAY_TASK_ID"] for file in found] == ["1", "2"]
    assert {file.spec.roles[0].command for file in found} == {found[0].spec.roles[0].command}
    assert "import os" in found[0].spec.roles[0].command


def test_array_concurrency_limit_can_be_set_by_request(place: Place) -> None:
    assert submitted(place, at_once=3).at_once == 3
    assert submitted(place, TEXT.replace("%2\n", "\n")).at_once == 4
    assert submitted(place, TEXT.replace("%2\n", "%50\n")).at_once == 4


def test_array_with_sweep_parameters_is_refused(place: Place) -> None:
    with pytest.raises(Refused) as caught:
        commands.submit(place.owner, SweepRequest(Document(TEXT), grid={"env.LR": [1]}))
    assert [problem.code for problem in caught.value.problems] == ["sweep_of_array"]
    assert not Job.objects.exists()


def test_array_request_repeated_returns_same_sweep(place: Place) -> None:
    asked = SweepRequest(Document(TEXT))
    first, _before = commands.submit(place.owner, asked, "k")
    assert commands.submit(place.owner, asked, "k") == (first, True)
    with pytest.raises(Conflict):
        commands.submit(place.owner, SweepRequest(Document(TEXT.replace("0-9:3", "0-9:2"))), "k")
    assert Job.objects.count() == 4


def test_array_submitted_as_single_job_is_refused(place: Place) -> None:
    with pytest.raises(Refused) as caught:
        submission.submit(place.owner, Document(TEXT))
    [problem] = caught.value.problems
    assert (problem.code, problem.line, problem.column) == ("array_is_sweep", 4, 17)
    assert problem.params == {"count": 4, "at_once": 2}


def test_array_problem_common_to_all_jobs_is_reported_once(place: Place) -> None:
    text = TEXT.replace("-t 10", "-t 10 -d afterok:nobodyknows1")
    with pytest.raises(Refused) as caught:
        submitted(place, text)
    [problem] = caught.value.problems
    assert problem.code == "no_job_to_wait_for"
    assert not Sweep.objects.exists()


def test_array_file_shows_current_concurrency_limit(place: Place) -> None:
    sweep = submitted(place)
    kept = TEXT.replace("hush", "{{API_TOKEN}}")
    assert arrays.file_of(sweep).splitlines()[:4] == kept.splitlines()[:4]
    again = submitted(place, TEXT.replace(",API_TOKEN=hush", ""))
    assert arrays.file_of(again) == again.file == TEXT.replace(",API_TOKEN=hush", "")
    for at_once, written in ((3, "0-9:3%3"), (4, "0-9:3"), (100, "0-9:3")):
        commands.change(place.owner, again, at_once)
        again.refresh_from_db()
        assert arrays.file_of(again) == again.file.replace("0-9:3%2", written)


def test_array_rerun_keeps_slurm_index(place: Place) -> None:
    sweep = submitted(place)
    second = commands.latest(sweep)[1].job
    transitions.end(second, attempt_of(second), State.FAILED, Reason(ReasonCode.EXIT_CODE))
    [made] = commands.again(place.owner, sweep)
    assert JobFile.objects.get(job=made).spec.env["SLURM_ARRAY_TASK_ID"] == "3"


def test_array_preview_shows_first_job_and_total_quota(place: Place) -> None:
    found = preview.of_document(place.owner, Document(TEXT), submission.JobTarget())
    assert (found.jobs, found.at_once, found.spec.name) == (4, 2, "sim-0")
    assert found.spec.env["SLURM_ARRAY_TASK_ID"] == "0"
    one = preview.of_document(
        place.owner, Document(TEXT.replace("#SBATCH --array=0-9:3%2\n", "")), submission.JobTarget()
    )
    assert (one.jobs, one.at_once) == (1, 1)
    wanted = [[share.wanted for share in level.shares] for level in one.levels]
    assert [[share.wanted for share in level.shares] for level in found.levels] == [
        [2 * each for each in level] for level in wanted
    ]
    told = render(found)
    assert (told["jobs"], told["at_once"]) == (4, 2)
    assert found.amounts == one.amounts


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(1, 3),
    st.lists(st.tuples(st.sampled_from(["look", "stop", "end"]), st.integers(0, 3)), max_size=8),
)
def test_array_never_exceeds_concurrency_limit(place: Place, most: int, steps: list[tuple[str, int]]) -> None:
    """Jobs end and are stopped, workers look or don't: nothing but the rows says whose turn it is."""
    sweep = submitted(place, TEXT.replace("0-9:3%2", f"0-3%{most}"))
    to_the_end = [("look", 0), ("end", 0)] * 4
    for step, which in [*steps, *to_the_end]:
        left = [run.job for run in commands.latest(sweep) if State(run.job.state) not in TERMINAL]
        started = [job for job in left if job.state != State.QUEUED]
        if step == "look":
            reconcile.drain(place.cluster.pk)
            assert len(under_way(sweep)) == min(most, len(left)), "as many as may be, once somebody looked"
        elif step == "stop" and left and left[-1].state == State.QUEUED:
            submission.stop(place.owner, left[-1])
        elif step == "end" and started:
            job = started[which % len(started)]
            transitions.end(job, attempt_of(job), State.SUCCEEDED, Reason(ReasonCode.COMPLETED))
        assert len(under_way(sweep)) <= most
    assert all(State(run.job.state) in TERMINAL for run in commands.latest(sweep))


def under_way(sweep: Sweep) -> list[State]:
    now = [State(run.job.state) for run in commands.latest(sweep)]
    return [state for state in now if state not in TERMINAL and state is not State.QUEUED]


def test_array_stop_by_other_user_is_refused(place: Place) -> None:
    sweep = submitted(place)
    with pytest.raises(submission.Forbidden):
        commands.stop(User.objects.create_user("bob"), sweep)
