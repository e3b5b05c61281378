"""The sanity check of replicas: they pass together, or none of them starts its command."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jobs.node.frameworks import sanity, sanity_program
from jobs.node.supervisor import sanity_file
from jobs.spec import Check

PROGRAM = Path(sanity_program.__file__)


def free_ports(count: int) -> list[int]:
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in servers]
    for server in servers:
        server.close()
    return ports


def start(folder: Path, rank: int, ports: list[int], seconds: int = 20, **env: str) -> subprocess.Popen[str]:
    """Start the check of one replica in a folder of its own."""
    folder = folder / str(rank)
    folder.mkdir()
    hosts = ",".join(f"worker-{at}=127.0.0.1:{port}" for at, port in enumerate(ports))
    own = {"PATH": os.environ["PATH"], "APP_ID": "a-b-1", "PAI_TASK_INDEX": str(rank)}
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(PROGRAM), "0", str(seconds), "torch"],
        cwd=folder,
        env={**own, "JOB_CONSOLE_SANITY_HOSTS": hosts, **env},
        stdout=subprocess.PIPE,
        text=True,
    )


def result(folder: Path, rank: int) -> dict[str, Any]:
    found = sanity_file.read(folder / str(rank), os.getuid())
    assert found is not None
    return found


def statuses(found: dict[str, Any]) -> list[str]:
    return [row["status"] for row in found["phases"]]


def test_constants_are_those_of_the_program() -> None:
    assert (sanity.EXIT_CODE, sanity.FILE) == (sanity_program.EXIT_CODE, sanity_program.FILE)
    assert sanity_file.PHASES == sanity_program.PHASES
    assert set(sanity_program.DEVICES) < set(sanity_file.CHECKS)


def test_two_replicas_pass_and_name_what_is_not_checked(tmp_path: Path) -> None:
    ports = free_ports(2)
    programs = [start(tmp_path, rank, ports, PATH="") for rank in range(2)]
    said = [program.communicate(timeout=60)[0] for program in programs]
    assert [program.returncode for program in programs] == [0, 0], said
    for rank in range(2):
        found = result(tmp_path, rank)
        assert (found["status"], statuses(found)) == ("Succeeded", ["Succeeded"] * 5)
        assert [row["check"] for row in found["checks"]] == ["cpu", "memory", "disk", "gpu"]
        assert found["phases"][1]["message"] == "not checked: gpu: no GPU was requested"
    assert "Sanity check: AllNodeCommCheck: Succeeded: all-reduce in a ring over TCP" in said[0]


def test_replica_with_faulty_gpu_stops_the_others(tmp_path: Path) -> None:
    driver = tmp_path / "bin" / "nvidia-smi"
    driver.parent.mkdir()
    driver.write_text("#!/bin/sh\necho 'Unable to determine the device handle: GPU is lost'; exit 15\n")
    driver.chmod(0o755)
    ports = free_ports(3)
    path = f"{driver.parent}:{os.environ['PATH']}"
    programs = [start(tmp_path, rank, ports) for rank in range(2)]
    programs.append(start(tmp_path, 2, ports, PATH=path, PAI_TASK_GPU_NUM="1"))
    for program in programs:
        program.communicate(timeout=60)
    assert [program.returncode for program in programs] == [86, 86, 86]
    for rank in range(3):
        found = result(tmp_path, rank)
        (fault,) = found["failed"]
        assert (fault["check"], fault["ranks"]) == ("gpu", [2])
        assert found["phases"][-1]["message"].startswith("worker-2: gpu: nvidia-smi: Unable to determine")


def test_replica_that_never_comes_is_named(tmp_path: Path) -> None:
    program = start(tmp_path, 0, free_ports(2), seconds=1)
    program.communicate(timeout=30)
    assert program.returncode == 86
    found = result(tmp_path, 0)
    assert found["failed"] == [{"check": "network", "detail": "did not join within 1 s", "ranks": [1]}]
    assert statuses(found) == ["Failed"]


def test_folder_without_room_fails_the_disk(tmp_path: Path) -> None:
    limited = f"ulimit -f 2048; exec {sys.executable} -I -S {PROGRAM} 0 20 none"
    ended = subprocess.run(["/bin/bash", "-c", limited], cwd=tmp_path, env={"PATH": ""}, check=False)
    assert ended.returncode == 86
    found = sanity_file.read(tmp_path, None)
    assert found is not None
    assert [(fault["check"], fault["detail"]) for fault in found["failed"]] == [
        ("disk", "[Errno 27] File too large")
    ]


def test_only_replica_has_no_communication_to_check(tmp_path: Path) -> None:
    program = start(tmp_path, 0, free_ports(1))
    program.communicate(timeout=30)
    assert program.returncode == 0
    assert statuses(result(tmp_path, 0)) == ["Succeeded"] * 3 + ["Skipped"] * 2


def test_replica_in_all_failed_pairs_is_blamed() -> None:
    pairs = [{"check": "pair", "detail": "refused", "ranks": [at, 2]} for at in range(2)]
    assert sanity_program.blame(pairs) == [{"check": "pair", "detail": "refused", "ranks": [2]}]
    assert sanity_program.blame(pairs[:1]) == pairs[:1]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"status": "Great"}', '{"status": ["Failed"]}', "[" * 60_000],
)
def test_result_that_is_none_is_not_taken(tmp_path: Path, text: str) -> None:
    (tmp_path / sanity.FILE).write_text(text)
    assert sanity_file.read(tmp_path, None) is None


def test_result_keeps_only_what_is_as_it_should_be(tmp_path: Path) -> None:
    hostile = {
        "status": "Failed",
        "more": 1,
        "phases": [{"phase": "Own", "status": "Failed"}, {"phase": "CheckInit", "status": "Failed"}, 7],
        "checks": 3,
        "failed": [{"check": "disk", "detail": "a\0b\ud800\n" + "x" * 9000, "ranks": [0, True, "1", -1]}],
    }
    file = tmp_path / sanity.FILE
    file.write_text(json.dumps(hostile))
    found = sanity_file.read(tmp_path, os.getuid())
    assert found is not None
    assert [row["phase"] for row in found["phases"]] == ["CheckInit"]
    (fault,) = found["failed"]
    assert (fault["ranks"], fault["detail"][:3], len(fault["detail"])) == ([0], "abx", 500)
    assert sanity_file.read(tmp_path, os.getuid() + 1) is None
    file.rename(tmp_path / "other")
    file.symlink_to("other")
    assert sanity_file.read(tmp_path, None) is None


def test_arguments_bound_the_time() -> None:
    assert sanity.timeout_s("") == sanity.TIMEOUT_S
    assert sanity.timeout_s("--sanity-check-timing=X --sanity-check-timeout=20") == 20


def test_command_runs_unchecked_where_there_is_no_python(tmp_path: Path) -> None:
    command = sanity.wrap_command(Check(enabled=True), 0, "", "echo trained")
    run = subprocess.run(
        ["/bin/bash", "-c", command], cwd=tmp_path, env={"PATH": ""}, stdout=subprocess.PIPE, check=True
    )
    assert run.stdout == b"trained\n"
    found = sanity_file.read(tmp_path, None)
    assert found is not None
    assert found["phases"][0]["message"] == "there is no python3 on the PATH of the job"
