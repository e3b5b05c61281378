"""Jobs by slurmrestd: v0.0.38 for real, newer versions against their own descriptions."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema  # type: ignore[import-untyped]
import pytest

from jobs.backends.base import NotSubmitted, Refused, Unknown, Unreachable
from jobs.backends.slurm.client.rest import client, options, parsing, tokens
from jobs.backends.slurm.script import job_script
from jobs.spec import EndSignal, Framework, NodeChoice, Resources, RetryPolicy
from jobs.states import ReasonCode, State
from tests.jobs.backends.benches import log_of, role, wait_until_over
from tests.jobs.backends.slurm_bench import SlurmBench, by_rest
from tests.slurm import Slurm
from tests.waiting import wait_for

ONE_GPU = Resources(cpu_milli=1000, memory_mib=64, gpus=1, gpu_type="a100")
DESCRIPTIONS = Path(__file__).parents[3] / "data" / "slurmrestd"
VERSIONS = [version for version in client.SUPPORTED if version >= client.WITH_PARSERS]


@contextmanager
def a_bench(folder: Path, slurm: Slurm, **more: Any) -> Iterator[SlurmBench]:
    folder.mkdir(exist_ok=True)
    made = SlurmBench(folder, slurm, {**by_rest(slurm), **more})
    yield made
    made.close()


@pytest.fixture
def rest(tmp_path: Path, slurm: Slurm) -> Iterator[SlurmBench]:
    with a_bench(tmp_path / "rest", slurm) as made:
        yield made


def description(version: int) -> Any:
    return json.loads((DESCRIPTIONS / f"v0.0.{version}.json").read_text())


def test_rest_socket_job_runs_roles_on_chosen_nodes_with_gpus(tmp_path: Path, slurm: Slurm) -> None:
    told = 'echo "$RANK/$WORLD_SIZE gpus=$CUDA_VISIBLE_DEVICES cpus=$SLURM_CPUS_PER_TASK $SLURMD_NODENAME"'
    with a_bench(tmp_path / "rest", slurm, url=slurm.rest_socket) as rest:
        handle = rest.backend.submit(
            rest.submission(
                role(told, name="Chief", nodes=NodeChoice(only=("cpu2",))),
                role(told, name="Worker", replicas=2, resources=ONE_GPU),
                end_signal=EndSignal(signal="USR1", seconds_before=60),
                time_limit_s=600,
                retry=RetryPolicy(limit=0, fancy=False),
            )
        )
        assert wait_until_over(rest.backend, handle).state is State.SUCCEEDED
        assert log_of(rest.backend, handle, "Chief") == "0/3 gpus= cpus=1 cpu2\n"
        workers = {log_of(rest.backend, handle, "Worker", index) for index in range(2)}
        assert workers == {f"{index + 1}/3 gpus={index} cpus=1 gpu1\n" for index in range(2)}
        shown = slurm.call("scontrol", "show", "job", handle.partition(".")[0])
        assert "Requeue=0" in shown


def test_absent_slurmrestd_reports_no_job_state(rest: SlurmBench, slurm: Slurm) -> None:
    handle = rest.backend.submit(rest.submission(role("echo up; sleep 300")))
    wait_for(lambda: log_of(rest.backend, handle), 60)
    slurm.kill("slurmrestd")
    try:
        for ask in (lambda: rest.backend.observe([handle]), rest.backend.inventory):
            with pytest.raises(Unreachable, match="slurmrestd at"):
                ask()
        with pytest.raises(NotSubmitted):
            rest.backend.submit(rest.submission())
    finally:
        slurm.start_rest()
    rest.backend.stop(handle, grace_s=0, signal="KILL")
    assert wait_until_over(rest.backend, handle).state is State.STOPPED


def test_expired_token_is_reported_and_affects_no_job(rest: SlurmBench, tmp_path: Path, slurm: Slurm) -> None:
    handle = rest.backend.submit(rest.submission(role("sleep 1")))
    token = slurm.token(lifespan=1)
    ends = tokens.expiry(token)
    assert ends is not None
    wait_for(lambda: time.time() > ends, 60)
    with a_bench(tmp_path / "late", slurm, token_command=("echo", token)) as late:
        with pytest.raises(Unreachable, match="has expired"):
            late.backend.observe([handle])
        with pytest.raises(NotSubmitted) as not_sent:
            late.backend.submit(late.submission())
    assert "has expired" in str(not_sent.value.reason.params["detail"])
    assert wait_until_over(rest.backend, handle).state is State.SUCCEEDED


def test_rejected_token_raises_unreachable(tmp_path: Path, slurm: Slurm) -> None:
    with (
        a_bench(tmp_path / "wrong", slurm, token_command=("echo", "a.b.c")) as wrong,
        pytest.raises(Unreachable),
    ):
        wrong.backend.inventory()


def test_token_is_made_by_command(tmp_path: Path, slurm: Slurm) -> None:
    with a_bench(tmp_path / "made", slurm) as made:
        assert made.backend.inventory().nodes
    failing = ("scontrol", "nonsense")
    with (
        a_bench(tmp_path / "failing", slurm, token_command=failing) as made,
        pytest.raises(Unreachable, match="command that makes tokens"),
    ):
        made.backend.inventory()


def test_token_command_receives_slurmrestd_url(tmp_path: Path, slurm: Slurm) -> None:
    script = f'[ "$0" = {slurm.rest} ] && exec scontrol token "username=$1"'
    with a_bench(tmp_path / "here", slurm, token_command=("sh", "-c", script, "{url}", "{user}")) as here:
        assert here.backend.inventory().nodes


def test_submission_with_lost_reply_is_found_and_runs_once(tmp_path: Path, slurm: Slurm) -> None:
    with deaf(slurm.rest) as url, a_bench(tmp_path / "rest", slurm, url=url) as rest:
        submission = rest.submission(role("echo started"))
        with pytest.raises(Unknown):
            rest.backend.submit(submission)
        (handle,) = rest.backend.find([submission.key])[submission.key]
        assert rest.backend.submit(submission) == handle
        wait_until_over(rest.backend, handle)
        assert log_of(rest.backend, handle) == "started\n"
        assert rest.backend.find([submission.key])[submission.key] == [handle]


def test_refused_job_left_in_slurm_is_not_found(rest: SlurmBench, slurm: Slurm) -> None:
    submission = rest.submission()
    with pytest.raises(subprocess.CalledProcessError):
        slurm.call("sbatch", f"--job-name={submission.key}", "--gres=gpu:9", "--wrap=true")
    left = slurm.call("squeue", "--noheader", "--states=all", f"--name={submission.key}", "--format=%T")
    assert left.split() == ["FAILED"]
    assert rest.backend.find([submission.key])[submission.key] == []
    handle = rest.backend.submit(submission)
    assert wait_until_over(rest.backend, handle).state is State.SUCCEEDED


def test_option_without_rest_field_is_refused(rest: SlurmBench) -> None:
    spread = rest.submission(
        role("true"), framework=Framework.SLURM, end_signal=EndSignal(signal="USR1", seconds_before=60)
    )
    with pytest.raises(Refused) as refused:
        rest.backend.submit(spread)
    assert "can't signal" in str(refused.value.reason.params["detail"])
    with pytest.raises(Refused) as refused:
        options.build_body("#!/bin/bash\n#SBATCH --bb=x\ntrue\n", 40, {})
    assert refused.value.reason.code is ReasonCode.REFUSED
    assert "--bb=x" in str(refused.value.reason.params["detail"])


@pytest.mark.parametrize("version", VERSIONS)
def test_request_body_matches_schema_of_newer_versions(version: int, on_slurm: SlurmBench) -> None:
    written = job_script.render(
        on_slurm.submission(
            role(name="Chief", nodes=NodeChoice(only=("cpu2",), never=("gpu2",))),
            role(name="Worker", replicas=2, resources=ONE_GPU),
            end_signal=EndSignal(signal="USR1", seconds_before=60),
            time_limit_s=5400,
            retry=RetryPolicy(limit=0, fancy=False),
        ),
        Path("/jobs/x"),
        on_slurm.config,
    )
    told = options.build_body(written, version, {"PATH": "/bin"})
    schema = description(version)["job"]
    for job in told["jobs"]:
        jsonschema.validate(job, schema)
    chief, worker = told["jobs"]
    assert chief["hold"] is True
    assert chief["requeue"] is False
    assert chief["time_limit"] == {"set": True, "infinite": False, "number": 90}
    assert chief["required_nodes"] == ["cpu2"]
    assert worker["tres_per_task"] == "gres/gpu:a100:1"
    assert worker["current_working_directory"] == "/jobs/x"
    assert "SLURM_CPUS_PER_TASK_HET_GROUP_1=1" in chief["environment"]


EVERYTHING = """#!/bin/bash
#SBATCH --begin=2030-01-01T00:00:00 --deadline=2030-02-01T00:00:00 --exclusive --mem=1G --no-kill --tmp=2G
#SBATCH --gpus=a100:2 --gres=gpu:1,shard:2 --cpus-per-gpu=2 --mem-per-gpu=1G --mail-type=END,FAIL
#SBATCH --open-mode=append --signal=B:TERM@30 --time=UNLIMITED --time-min=10 --requeue --nice=5 --array=0-3
#SBATCH --licenses=x:1 --dependency=afterok:1 --constraint=a --qos=q --account=a --comment=c --reservation=r
true
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_request_options_have_types_of_newer_versions(version: int) -> None:
    job = options.build_body(EVERYTHING, version, {})["job"]
    jsonschema.validate(job, description(version)["job"])
    assert job["kill_warning_flags"] == ["BATCH_JOB"]
    assert job["shared"] == ["none"]
    assert job["time_limit"]["infinite"] is True


@pytest.mark.parametrize("version", VERSIONS)
def test_jobs_and_nodes_from_newer_versions_are_read(version: int) -> None:
    def number(value: int) -> dict[str, object]:
        return {"set": True, "infinite": False, "number": value}

    told = {
        "job_id": 7,
        "het_job_id": number(0),
        "name": "k",
        "user_name": "root",
        "job_state": ["FAILED", "COMPLETING"],
        "state_reason": "NonZeroExitCode",
        "restart_cnt": 2,
        "nodes": "gpu1",
        "start_time": number(100),
        "end_time": {"set": False, "infinite": True, "number": 0},
        "accrue_time": number(90),
        "exit_code": {
            "status": ["SIGNALED"],
            "return_code": number(0),
            "signal": {"id": number(9), "name": "KILL"},
        },
    }
    node = {
        "name": "gpu1",
        "state": ["IDLE", "DRAIN"],
        "cpus": 16,
        "effective_cpus": 14,
        "alloc_cpus": 2,
        "real_memory": 64000,
        "alloc_memory": 100,
        "gres": "gpu:a100:4",
        "gres_used": "gpu:a100:1(IDX:0)",
        "reason": "hot",
    }
    described = description(version)
    jsonschema.validate(told, described["listed"])
    jsonschema.validate(node, described["node"])
    listed = parsing.parse_job(told)
    assert listed is not None
    assert (listed.state, listed.restarts, listed.exit_code) == ("COMPLETING", 2, 137)
    assert (listed.starts_at, listed.ended_at, listed.waited) == (100.0, None, True)
    assert parsing.parse_job({**told, "het_job_id": number(6)}) is None
    said = parsing.parse_node(node)
    assert (said["State"], said["CPUEfctv"], said["AllocMem"]) == ("IDLE+DRAIN", "14", "100")


def test_newest_common_version_is_selected() -> None:
    assert client.newest_common(description(43)["paths"] + description(40)["paths"]) == 43
    assert client.newest_common(["/slurm/v0.0.36/jobs", "/slurm/v0.0.38/jobs"]) == 38
    assert client.newest_common(["/slurm/v0.0.99/jobs/", "/slurmdb/v0.0.38/jobs"]) is None


@contextmanager
def deaf(url: str) -> Iterator[str]:
    """An address behind which slurmrestd is, and from which no answer to a submission comes."""
    to = urlsplit(url)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            with near, socket.create_connection((to.hostname or "", to.port or 0)) as far:
                _hand_on(near, far)

    serving = threading.Thread(target=serve)
    serving.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        serving.join()


def _hand_on(near: socket.socket, far: socket.socket) -> None:
    asked = b""
    while b"\r\n\r\n" not in asked:
        asked += near.recv(65536)
    head, _, rest = asked.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    length = next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0)
    while len(rest) < length:
        rest += near.recv(65536)
    far.sendall(head + b"\r\nconnection: close\r\n\r\n" + rest)
    is_submission = b"/job/submit" in lines[0]
    answer = b""
    while more := far.recv(65536):
        if is_submission:
            return
        answer += more
    near.sendall(answer.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1))
