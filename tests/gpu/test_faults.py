"""A kernel that never ends on a real GPU is a hang: the job goes on from its checkpoint, as if without it."""

from __future__ import annotations

from typing import Final

import pytest

from jobs.models import Attempt, Job, StackDump
from jobs.states import State
from tests import gpu
from tests.gpu.programs import ONE_GPU, PATH
from tests.jobs.scheduling.fault_site import FaultSite, decisions, is_over, site

__all__ = ["site"]

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(bool(gpu.missing()), reason=gpu.missing() or "there is a GPU"),
]

STEPS: Final = 6
FAULT_AT: Final = 3
HANGS: Final = (
    "--enable-job-restart=True --max-num-of-job-restart=3 --enable-log-hang-detection=True "
    "--log-hang-interval-in-seconds=15"
)
TRAIN: Final = """
import os, sys, torch, torch.distributed as dist
from pathlib import Path
from torch.nn.parallel import DistributedDataParallel

fault, judge = sys.argv[1], Path(sys.argv[2])
is_first = not (judge / "begun").exists()
(judge / "begun").touch()
dist.init_process_group("nccl")
torch.manual_seed(7)
model = DistributedDataParallel(torch.nn.Linear(16, 4).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
first = 0
if resumed := os.environ.get("RESUME_FROM"):
    kept = torch.load(resumed)
    first = kept["step"]
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])


def wait_for_ever():
    torch.cuda._sleep(1 << 39)  # cycles: some minutes
    torch.cuda.synchronize()


for step in range(first, STEPS):
    if fault == "kernel" and is_first and step == FAULT_AT:
        wait_for_ever()
    torch.manual_seed(100 + step)
    loss = model(torch.randn(32, 16, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step={step} loss={loss.item():.6f}", flush=True)
    saved = Path(os.environ["CHECKPOINT_DIR"])
    state = {"step": step + 1, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, saved / "next.tmp")
    (saved / "next.tmp").rename(saved / f"step-{step + 1}")
weights = [value.tolist() for value in model.state_dict().values()]
(judge / "weights").write_text(repr(weights))
""".replace("STEPS", str(STEPS)).replace("FAULT_AT", str(FAULT_AT))


def train(site: FaultSite, fault: str) -> Job:
    """Submit a training on the GPU that meets a fault."""
    folder = site.judge / fault
    folder.mkdir()
    folder.chmod(0o777)
    (site.judge / "train.py").write_text(TRAIN)
    command = f"export PATH={PATH['PATH']}; exec python3 {site.judge}/train.py {fault} {folder}"
    return site.submit(fault, command, HANGS, replicas=1, size=ONE_GPU)


@pytest.mark.parametrize("site", ["local"], indirect=True)
def test_job_whose_kernel_never_ends_resumes_with_the_same_weights(site: FaultSite) -> None:
    plain, hanging = train(site, "none"), train(site, "kernel")
    site.follow([plain, hanging], is_over)
    assert (plain.state, plain.attempt_number) == (State.SUCCEEDED, 1)
    assert (hanging.state, hanging.attempt_number) == (State.SUCCEEDED, 2)
    assert decisions(hanging) == [("hang", "restarts_left", True)]
    assert Attempt.objects.get(job=hanging, number=2).resumed_from == f"step-{FAULT_AT}"
    weights = {name: (site.judge / name / "weights").read_text() for name in ("none", "kernel")}
    assert weights["none"] == weights["kernel"]
    dumps = [each.comparison for each in StackDump.objects.filter(attempt__job=hanging)]
    assert any(each and each["place"].startswith("synchronize (torch/cuda") for each in dumps), dumps
