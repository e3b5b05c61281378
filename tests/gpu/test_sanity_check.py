"""The sanity check on a real GPU: the driver's word, a product, and NCCL."""

from __future__ import annotations

from jobs.spec import Check, Framework
from tests.gpu.programs import ONE_GPU, PATH, log_of_ended
from tests.jobs.backends.benches import LocalBench, role, wait_until_over

CHECKED = Check(enabled=True, arguments="--sanity-check-timeout=120")


def test_gpu_is_computed_with_before_the_command(bench: LocalBench) -> None:
    handle = bench.backend.submit(
        bench.submission(
            role("echo trained", resources=ONE_GPU, env=PATH),
            framework=Framework.PYTORCH,
            sanity_check=CHECKED,
        )
    )
    log = log_of_ended(bench, handle)
    assert log.splitlines()[-1] == "trained"
    assert "Sanity check: SingleNodeCommCheck: Succeeded: sum of two; all-reduce of 1 GPUs by nccl" in log
    (replica,) = wait_until_over(bench.backend, handle).replicas
    assert replica.sanity is not None
    (checked,) = [row for row in replica.sanity["checks"] if row["check"] == "gpu"]
    assert checked["status"] == "Succeeded"
    assert checked["detail"].startswith("1 GPUs: NVIDIA")
