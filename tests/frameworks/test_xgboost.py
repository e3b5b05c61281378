"""XGBoost jobs: a tracker beside rank 0 brings the replicas together."""

from __future__ import annotations

from typing import Final

from jobs.spec import Framework, Resources, Software
from jobs.states import State
from tests.frameworks import environments
from tests.jobs.backends.benches import Bench, log_of, role, wait_until_over

TRAIN: Final = """
import os, numpy, xgboost
from xgboost import collective
place = {
    "dmlc_tracker_uri": os.environ["DMLC_TRACKER_URI"],
    "dmlc_tracker_port": int(os.environ["DMLC_TRACKER_PORT"]),
    "dmlc_task_id": os.environ["DMLC_TASK_ID"],
}
with collective.CommunicatorContext(**place):
    rank, size = collective.get_rank(), collective.get_world_size()
    data = xgboost.DMatrix(numpy.random.default_rng(rank).random((64, 2)), label=numpy.arange(64) % 2)
    booster = xgboost.train({"objective": "binary:logistic", "nthread": 1}, data, 2)
    models = collective.broadcast(booster.save_raw().hex(), 0) == booster.save_raw().hex()
    print(rank, size, models)
"""


def test_xgboost_workers_train_one_model(bench: Bench) -> None:
    (bench.judge / "train.py").write_text(TRAIN)
    software = Software(venv=str(environments.copy("xgboost", bench.judge)))
    size = Resources(cpu_milli=1000, memory_mib=2048)
    two = role(f"python {bench.judge}/train.py", replicas=2, resources=size)
    handle = bench.backend.submit(bench.submission(two, framework=Framework.XGBOOST, software=software))
    seen = wait_until_over(bench.backend, handle, 120)
    logs = [log_of(bench.backend, handle, index=index) for index in range(2)]
    assert seen.state is State.SUCCEEDED, logs
    assert [log.splitlines()[-1] for log in logs] == ["0 2 True", "1 2 True"]
