"""A site's Prometheus as the source of usage: a real one, whose series are made by rules."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client

from jobs.backends.base import Handle, Unreachable
from jobs.backends.metrics_source import MetricsSource
from jobs.models import Job, Replica, ReplicaUsage
from jobs.scheduling import idle, prometheus
from jobs.states import ReplicaState, State
from tests.factories import attempt_of, make_cluster, make_job, make_replica, make_user
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
    with pytest.raises(Unreachable, match="CONSOLE_EGRESS_HOSTS"):
        prometheus.ask(MetricsSource("http://127.0.0.1:9"), "up")


@pytest.mark.django_db
def test_connection_test_names_what_is_wrong(source: MetricsSource, settings: LazySettings) -> None:
    def results(**changes: Any) -> dict[str, str]:
        found = prometheus.check_queries(replace(source, **changes))
        return {str(each.params.get("metric", "")): str(each) for each in found}

    assert results()["gpu_percent"] == "gpu_percent: 4 series of jobs."
    queries = {"cpu_seconds": "sum(", "memory_bytes": "absent_metric"}
    found = results(queries=queries, job_labels=("job_id",))
    assert found["gpu_percent"] == (
        "gpu_percent: no series has the job's number. Expected label: job_id. "
        "Labels of the series: Hostname, hpc_job."
    )
    assert found["cpu_seconds"].startswith("cpu_seconds: Prometheus says: ")
    assert found["memory_bytes"].startswith("memory_bytes: the query finds no series.")
    assert "name. Expected label: host" in results(node_labels=("host",))["gpu_percent"]
    port = free_port()
    silent = {"prometheus": f"http://127.0.0.1:{port}"}
    assert results(**silent)[""].startswith(
        f"The console is not allowed to contact http://127.0.0.1:{port}. Add http://127.0.0.1:{port} to"
    )
    settings.CONSOLE_EGRESS_HOSTS = [*settings.CONSOLE_EGRESS_HOSTS, silent["prometheus"]]
    assert results(**silent)[""].startswith(f"No answer from {silent['prometheus']}: Connection failed")
    elsewhere = results(prometheus=f"{source.prometheus}/elsewhere")
    assert elsewhere[""] == (
        f"No Prometheus at {source.prometheus}/elsewhere (404). Enter the address before /api/v1/query."
    )


@pytest.mark.django_db
def test_admin_saves_and_tests_the_prometheus_of_a_slurm_cluster_alone(source: MetricsSource) -> None:
    slurm = make_cluster("hpc", backend="slurm", config={"metrics": {"prometheus": source.prometheus}})
    local = make_cluster("here", backend="local")
    client = Client()
    client.force_login(make_user(admin=True))
    address = "/admin/quotas/cluster/{}/change/"
    assert "Save and test Prometheus" not in client.get(address.format(local.pk)).content.decode()
    page = client.get(address.format(slurm.pk))
    assert "Save and test Prometheus" in page.content.decode()
    fields = {"slug": "hpc", "name": "HPC", "backend": "slurm", "admission": "engine", "cordon_percent": "0"}
    config = json.dumps({"metrics": {"prometheus": source.prometheus, "node_labels": ["host"]}})
    fields |= {"save_untested": "on"}  # there is no Slurm
    sent = {**fields, "config": config, "quotas_cluster_save_and_test_prometheus": "1"}
    answer = client.post(address.format(slurm.pk), sent, follow=True)
    assert answer.redirect_chain[-1][0] == address.format(slurm.pk), "stays on the page"
    said = [str(each) for each in answer.context["messages"]]
    assert any("gpu_percent: no series has the node's name." in each for each in said), said
