"""TensorFlow jobs: TF_CONFIG as TensorFlow 2 documents it.

The library itself is left out: its environment has 1.6 GB, and takes minutes to make.
"""

from __future__ import annotations

import json

from jobs.spec import CompletionPolicy, Framework
from jobs.states import ReplicaState, State
from tests.jobs.backends.benches import Bench, log_of, replica, role, wait_until_over


def test_tensorflow_chief_ends_job_and_evaluator_is_in_no_cluster(bench: Bench) -> None:
    command = f"""
    cd {bench.judge} && echo "$TF_CONFIG" && : >$PAI_TASK_ROLE_NAME-$PAI_TASK_INDEX
    [ "$PAI_TASK_ROLE_NAME" = Chief ] || exec sleep 600
    until [ -e Worker-0 ] && [ -e Evaluator-0 ]; do sleep 0.1; done
    """
    roles = (
        role(command, name="Worker", replicas=2),
        role(command, name="Chief", completion=CompletionPolicy(min_succeeded=1)),
        role(command, name="Evaluator"),
    )
    handle = bench.backend.submit(bench.submission(*roles, framework=Framework.TENSORFLOW))
    seen = wait_until_over(bench.backend, handle)
    assert seen.state is State.SUCCEEDED
    assert replica(seen, "Evaluator").state is ReplicaState.STOPPED
    configs = {
        each: json.loads(log_of(bench.backend, handle, each)) for each in ("Worker", "Chief", "Evaluator")
    }
    clusters = [config["cluster"] for config in configs.values()]
    assert {name: len(hosts) for name, hosts in clusters[0].items()} == {"worker": 2, "chief": 1}
    assert clusters == [clusters[0]] * 3
    assert configs["Chief"]["task"] == {"type": "chief", "index": 0}
    assert configs["Evaluator"]["task"] == {"type": "evaluator", "index": 0}
