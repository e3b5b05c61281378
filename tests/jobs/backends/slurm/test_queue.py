"""What others run on a Slurm, told alike by its command line and by slurmrestd."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest

from jobs.backends.base import QueuedJob
from jobs.backends.remote import attempts
from jobs.backends.slurm.client import nodes, queue
from jobs.backends.slurm.client.commands import CommandController
from jobs.backends.slurm.client.controller import Controller
from jobs.backends.slurm.client.rest import parsing
from jobs.backends.slurm.client.rest.controller import RestController
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.handles import SlurmJob
from tests.jobs.backends.benches import role
from tests.jobs.backends.slurm.test_rest import VERSIONS, description
from tests.jobs.backends.slurm_bench import SlurmBench, by_rest
from tests.slurm import Slurm
from tests.waiting import wait_for

HOSTILE = "a\nb|c||\n7|N/A|7|root"
TOLD = {
    **dict.fromkeys(queue.FIELDS, ""),
    "JobID": "17",
    "HetJobID": "N/A",
    "JobArrayID": "17",
    "StateCompact": "R",
    "UserName": "carol",
    queue.OUTPUT: "/home/carol/out",
    queue.NAME: "train",
}


def by_both(bench: SlurmBench, slurm: Slurm) -> tuple[dict[str, QueuedJob], dict[str, QueuedJob]]:
    """What is in the queue, by number, by the command line and by REST."""
    rest = SlurmConfig.from_settings(bench.folder, {**bench.told, **by_rest(slurm)})
    return (
        {job.number: job for job in CommandController(bench.config).queue()},
        {job.number: job for job in RestController(rest).queue()},
    )


def test_queue_is_reported_alike_by_command_line_and_rest(
    on_slurm: SlurmBench, slurm: Slurm, tmp_path: Path
) -> None:
    made: list[str] = []

    def submit(*arguments: str) -> str:
        made.append(slurm.call("sbatch", "--parsable", f"--chdir={tmp_path}", *arguments).strip())
        return made[-1]

    sleeps = "--wrap=sleep 300"
    try:
        hostile = submit("--hold", f"--job-name={HOSTILE}", f"--output={tmp_path}/x|y\nz-%j", sleeps)
        array = submit("--hold", "--array=0-3%2", "--gres=gpu:2", sleeps)
        runs = submit("--job-name=run", "--output=/tmp/%x-%u-%5j", "--gres=gpu:titan:1", "-n2", sleeps)
        plain = submit("--array=5", sleeps)
        het = submit("-n1", ":", "-n2", sleeps)
        going = {runs, f"{plain}_5", f"{het}+0", f"{het}+1"}
        wait_for(
            lambda: (
                going <= {job.number for job in CommandController(on_slurm.config).queue() if job.running}
            ),
            60,
        )
        mine = {hostile, f"{array}_[0-3%2]", *going}
        commands, rest = by_both(on_slurm, slurm)
        assert {number: commands[number] for number in mine} == {
            number: replace(rest[number], output=commands[number].output) for number in mine
        }
        assert commands[hostile].name == HOSTILE
        assert (commands[hostile].running, commands[hostile].reason) == (False, "JobHeldUser")
        assert commands[f"{array}_[0-3%2]"].gpus == {"": 2}
        assert (commands[runs].gpus, commands[runs].nodes) == ({"titan": 1}, ("gpu2",))
        written = f"/tmp/run-root-{runs.zfill(5)}"
        assert commands[runs].output == rest[runs].output == written
        assert commands[f"{plain}_5"].output == rest[f"{plain}_5"].output == f"{tmp_path}/slurm-{plain}_5.out"
        assert commands[f"{het}+0"].output == rest[f"{het}+0"].output == f"{tmp_path}/slurm-{het}.out"
        assert all(job.handle is None for job in commands.values() if job.number in mine)
    finally:
        for number in made:
            slurm.call("scancel", number)
        wait_for(slurm.ready, 60)


def test_partitions_and_reservations_are_reported_alike(on_slurm: SlurmBench, slurm: Slurm) -> None:
    rest = SlurmConfig.from_settings(on_slurm.folder, {**on_slurm.told, **by_rest(slurm)})
    ways: list[Controller] = [CommandController(on_slurm.config), RestController(rest)]
    assert [nodes.read_inventory(way.nodes(), way.reservations()).set_aside for way in ways] == [(), ()]
    later = ("StartTime=now+2hours", "Duration=60", "Users=root")
    made: list[str] = []
    try:
        for what in (
            ("ReservationName=lecture", "Nodes=gpu[1-2]"),
            ("ReservationName=repair", "Nodes=cpu1", "Flags=MAINT"),
        ):
            slurm.call("scontrol", "create", "reservation", *what, *later)
            made.append(what[0])
        by_lines, by_rest_ = (nodes.read_inventory(way.nodes(), way.reservations()) for way in ways)
    finally:
        for name in made:
            slurm.call("scontrol", "delete", name)
    assert by_lines == by_rest_
    lecture, repair = sorted(by_lines.set_aside, key=lambda each: each.name)
    assert (lecture.name, lecture.nodes, lecture.whom) == ("lecture", ("gpu1", "gpu2"), ("root",))
    assert lecture.until == lecture.since + 3600
    assert (repair.nodes, repair.maintenance, lecture.maintenance) == (("cpu1",), True, False)
    partitions = {node.name: node.partitions for node in by_lines.nodes}
    assert partitions["gpu1"] == ("all", "gpu")
    assert partitions["cpu2"] == ("all", "urgent")


def test_queued_job_has_its_handle_and_namesake_has_another(on_slurm: SlurmBench, slurm: Slurm) -> None:
    submission = on_slurm.submission(role("sleep 300"), role("sleep 300", name="other"))
    handle = on_slurm.backend.submit(submission)
    false = slurm.call("sbatch", "--parsable", "--hold", f"--job-name={submission.key}", "--wrap=true")
    for jobs in by_both(on_slurm, slurm):
        same = [job for job in jobs.values() if job.name == submission.key]
        assert [job.handle for job in same].count(handle) == 2
        assert [job.handle for job in same if job.number == false.strip()] == [
            SlurmJob(int(false), submission.key).handle
        ]


def test_resubmitted_job_retains_its_handle(tmp_path: Path) -> None:
    key = "b1-job0-1"
    folder = attempts.attempt_folder(tmp_path, key)
    folder.mkdir(parents=True)
    attempts.write_text(folder / "sent", "9")
    attempts.write_text(folder / "again", "17")
    told = {**TOLD, queue.NAME: key}
    assert queue.read_job(told, tmp_path).handle == SlurmJob(9, key).handle
    assert queue.read_job({**told, "JobID": "18"}, tmp_path).handle == SlurmJob(18, key).handle


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ("/home/%u/%x.%j", "/home/carol/train.17"),
        ("/home/carol/%N.out", "/home/carol/%N.out"),
        ("relative", ""),
        ("(null)", ""),
        ("", ""),
        ("/" + "x" * 2000, ""),
    ],
)
def test_job_output_path_is_resolved(tmp_path: Path, output: str, found: str) -> None:
    assert queue.read_job({**TOLD, queue.OUTPUT: output}, tmp_path).output == found


@pytest.mark.parametrize("version", VERSIONS)
def test_numbers_as_objects_from_newer_versions_are_read(tmp_path: Path, version: int) -> None:
    def number(value: int) -> dict[str, object]:
        return {"set": True, "infinite": False, "number": value}

    told = {
        "job_id": 17,
        "het_job_id": {"set": False, "infinite": False, "number": 0},
        "array_job_id": number(12),
        "array_task_id": number(3),
        "array_task_string": "",
        "name": "train",
        "user_name": "carol",
        "job_state": ["RUNNING"],
        "tres_alloc_str": "cpu=2,mem=1.50G",
        "start_time": number(100),
        "standard_output": "/home/carol/%A.%a",
        "batch_flag": True,
    }
    jsonschema.validate(told, description(version)["listed"])
    described = description(version)["listed"]["properties"]
    assert set(told) <= set(described)
    seen = queue.read_job(parsing.parse_queued(told), tmp_path)
    assert (seen.number, seen.running, seen.started_at) == ("12_3", True, 100.0)
    assert (seen.cpu_milli, seen.memory_mib, seen.output) == (2000, 1536, "/home/carol/12.3")
