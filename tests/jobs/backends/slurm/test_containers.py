"""Init containers and sidecars as processes of a replica's step, on a real Slurm."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.backends.base import Refused
from jobs.spec import Framework, PodContainer
from jobs.states import ReasonCode, State
from tests.jobs.backends.benches import log_of, replica, role, wait_until_over
from tests.jobs.backends.local.test_containers import both, shell
from tests.jobs.backends.slurm_bench import SlurmBench


def test_init_containers_run_in_order_and_sidecar_ends_with_command_on_slurm(on_slurm: SlurmBench) -> None:
    handle = on_slurm.backend.submit(on_slurm.submission(both(replicas=2), secrets={"t": "s3cret"}))
    seen = wait_until_over(on_slurm.backend, handle, timeout=90)
    assert (seen.state, replica(seen).exit_code) == (State.FAILED, 3), log_of(on_slurm.backend, handle)
    for line in ("[first] out", "[first] err", "one", "two /shared bench", "three s3cret", "[side] bye"):
        assert line in log_of(on_slurm.backend, handle).splitlines()
    folder = on_slurm.attempt(handle)
    assert not [
        path
        for path in folder.rglob("*")
        if path.is_file()
        and b"s3cret" in path.read_bytes()
        and "logs" not in path.parts
        and "empty" not in path.parts
    ]
    assert not (folder / "secrets").exists()


def test_failed_init_container_fails_replica_with_its_reason_on_slurm(
    on_slurm: SlurmBench, tmp_path: Path
) -> None:
    began = tmp_path / "began"
    submitted = role(f"touch {began}", init_containers=(shell("fetch", "echo no data >&2; exit 7"),))
    handle = on_slurm.backend.submit(on_slurm.submission(submitted))
    seen = wait_until_over(on_slurm.backend, handle, timeout=90)
    assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode.INIT_CONTAINER_FAILED)
    assert {"container": "fetch", "exit_code": 7}.items() <= seen.reason.params.items()
    assert "no data" in str(seen.reason.params["error"])
    assert not began.exists()


@pytest.mark.parametrize(
    ("container", "framework", "why"),
    [
        (PodContainer(name="a"), None, "container_without_command"),
        (PodContainer(name="a", image="x", command=("true",)), None, "container_image_alone"),
        (PodContainer(name="a", command=("true",)), Framework.SLURM, "containers_of_script"),
    ],
)
def test_container_that_cannot_run_on_slurm_is_refused(
    on_slurm: SlurmBench, container: PodContainer, framework: Framework | None, why: str
) -> None:
    submitted = role("true", replicas=2, sidecars=(container,))
    with pytest.raises(Refused) as refused:
        on_slurm.backend.submit(on_slurm.submission(submitted, framework=framework))
    assert refused.value.reason.params["why"] == why
