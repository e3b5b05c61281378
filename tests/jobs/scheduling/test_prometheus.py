"""A site's Prometheus as the source of usage: a real one, whose series are made by rules."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from django.conf import LazySettings

from jobs.backends.base import Handle, Unreachable
from jobs.backends.metrics_source import MetricsSource
from jobs.models import Job, Replica, ReplicaUsage
from jobs.scheduling import idle, prometheus
from jobs.states import ReplicaState, State
from tests.factories import attempt_of, make_job, make_replica
from tests.ports import free_port
from tests.required import skip_without
from tests.waiting import wait_for

SERIES = (
    ("DCGM_FI_DEV_GPU_UTIL", {"hpc_job": "4711", "Hostname": "n1.cluster", "gpu": "0"}, "12"),
    ("DCGM_FI_DEV_GPU_UTIL", {"hpc_job": "4711", "Hostname": "n1.cluster", "gpu": "1"}, "87"),
    ("DCGM_FI_DEV_GPU_UTIL", {"hpc_job": "4711", "Hostname": "n2.cluster", "gpu": "0"}, "5"),
    ("DCGM_FI_DEV_GPU_UTIL", {"hpc_job": "4711", "Hostname": "n3.cluster", "gpu": "0"}, "9"),
    ("DCGM_FI_DEV_GPU_UTIL", {"hpc_job": "9999", "Hostname": "n1.cluster", "gpu": "2"}, "99"),
    ("slurm_job_core_usage_total", {"slurmjobid": "4711", "core": "3"}, "time() * 5e8"),
    ("slurm_job_memory_usage", {"slurmjobid": "4711"}, "512 * 1024 * 1024"),
)
"""Series of job 4711 and of a stranger's; usage of CPU and memory is that of node n1."""


@dataclass
class Elsewhere:
    """A backend that does not measure."""

    metrics_source: MetricsSource
    asked: list[Handle] = field(default_factory=list)

    def engine_number(self, handle: Handle) -> str:
        self.asked.append(handle)
        return handle.partition(".")[0]


@pytest.fixture
def source(tmp_path: Path, settings: LazySettings) -> Iterator[MetricsSource]:
    skip_without("prometheus", "prometheus")
    rules = [{"record": name, "labels": labels, "expr": f"vector({value})"} for name, labels, value in SERIES]
    for rule in rules[-2:]:
        rule["labels"] = {**SERIES[rules.index(rule)][1], "instance": "n1:9798"}
    files = {
        "rules.json": {"groups": [{"name": "jobs", "rules": rules}]},
        "prometheus.json": {"global": {"evaluation_interval": "1s"}, "rule_files": ["rules.json"]},
    }
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    address = f"127.0.0.1:{free_port()}"
    settings.CONSOLE_EGRESS_HOSTS = [f"http://{address}"]
    command = ["prometheus", f"--config.file={tmp_path}/prometheus.json", f"--web.listen-address={address}"]
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(
            [*command, f"--storage.tsdb.path={tmp_path}/data"], stdout=log, stderr=log
        ) as process,
    ):
        found = MetricsSource(f"http://{address}/")

        def answers() -> bool:
            assert process.poll() is None, (tmp_path / "log").read_text()
            try:
                return all(prometheus.ask(found, query) for query in found.list_queries().values())
            except Unreachable:
                return False

        try:
            wait_for(answers, 30, 0.2)
            yield found
        finally:
            process.kill()


@pytest.mark.django_db
def test_usage_of_slurm_jobs_comes_from_prometheus(
    source: MetricsSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job(State.RUNNING)
    attempt = attempt_of(job)
    Job.objects.filter(pk=job.pk).update(gpus=2)
    attempt.handle = "4711.key"
    attempt.save()
    Replica.objects.filter(attempt=attempt).delete()
    for index, node in enumerate(("n1", "n2", "n3", "n3", "n4")):
        make_replica(attempt, "worker", index, state=ReplicaState.RUNNING, node=node)
    backend = Elsewhere(source)
    monkeypatch.setattr(idle, "backend_for", lambda _cluster: backend)
    idle.watch(job.cluster_id)
    uses = {use.replica.index: use for use in ReplicaUsage.objects.select_related("replica")}
    assert set(uses) == {0, 1}, "two replicas on one node can't be told apart, and of n4 nothing is known"
    first, second = uses[0], uses[1]
    assert (first.gpu_percents, first.memory_mib, first.cpu_milli) == ([87], 512, 0)
    assert (first.cpu_s or 0) > 1e8, "nanoseconds as seconds"
    assert (second.gpu_percents, second.memory_mib, second.cpu_s, second.cpu_milli) == ([5], None, None, None)
    idle.write(
        attempt,
        prometheus.measure(source, backend, [attempt])[Handle("4711.key")],
        idle.Measured(5, interactive=False),
    )
    assert second.samples[-1].cpu is None


@pytest.mark.django_db
def test_prometheus_that_does_not_answer_or_refuses_a_query_is_unreachable(source: MetricsSource) -> None:
    with pytest.raises(Unreachable, match="parse error"):
        prometheus.ask(source, "sum(")
    with pytest.raises(Unreachable):
        prometheus.ask(MetricsSource("http://127.0.0.1:9"), "up")
