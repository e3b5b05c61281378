"""Settings of a site's own Prometheus, which measures the jobs of an engine that does not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final

from pydantic import AfterValidator, Field
from pydantic.dataclasses import dataclass

from jobs.backends.settings import FROZEN, invalid
from jobs.backends.settings import mark as _

_URL: Final = re.compile(r"https?://[A-Za-z0-9.:\[\]_-]+(/[A-Za-z0-9._/-]*)?")

QUERIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "gpu_percent": 'max by (hpc_job, Hostname) (DCGM_FI_DEV_GPU_UTIL{hpc_job!=""})',
        "cpu_seconds": "sum by (slurmjobid, instance) (slurm_job_core_usage_total) / 1e9",
        "memory_bytes": "sum by (slurmjobid, instance) (slurm_job_memory_usage)",
        "disk_read_bytes": "",
        "disk_written_bytes": "",
        "received_bytes": "",
        "sent_bytes": "",
    }
)
"""The metrics, and the query of each where the settings have none; "" is not asked.

DCGM exporter with its mapping of HPC jobs (github.com/NVIDIA/dcgm-exporter), and slurm-job-exporter
(github.com/guilbaults/slurm-job-exporter).  All but `gpu_percent` and `memory_bytes` are counters.
"""

JOB_LABELS: Final = ("hpc_job", "slurmjobid", "jobid")
NODE_LABELS: Final = ("Hostname", "node", "instance")


def _check_url(value: str) -> str:
    if not _URL.fullmatch(value):
        raise invalid("no_prometheus")
    return value.rstrip("/")


def _check_queries(queries: dict[str, str]) -> dict[str, str]:
    if unknown := sorted(set(queries) - set(QUERIES)):
        raise invalid("no_metric", value=", ".join(unknown), known=", ".join(QUERIES))
    return queries


@dataclass(frozen=True, slots=True, config=FROZEN)
class MetricsSource:
    """A Prometheus, its queries by metric, and the labels that tell a series' job and node.

    The job is the engine's own number; of several labels the first that a series has counts.
    """

    prometheus: Annotated[str, AfterValidator(_check_url)]
    queries: Annotated[dict[str, str], AfterValidator(_check_queries)] = Field(default_factory=dict)
    job_labels: tuple[str, ...] = JOB_LABELS
    node_labels: tuple[str, ...] = NODE_LABELS

    def list_queries(self) -> dict[str, str]:
        """Return the queries to ask, by metric."""
        return {metric: query for metric, query in {**QUERIES, **self.queries}.items() if query}


LABELS: Final[Mapping[str, tuple[str, str]]] = {
    "prometheus": (
        _("Prometheus address"),
        _("The site's Prometheus, from which usage of jobs is read: http://prometheus:9090. Empty: none."),
    ),
    "queries": (
        _("Prometheus: queries"),
        _(
            "A metric and its query, one pair per line: gpu_percent, cpu_seconds, memory_bytes, "
            "disk_read_bytes, disk_written_bytes, received_bytes, sent_bytes. Default: DCGM exporter and "
            "slurm-job-exporter."
        ),
    ),
    "job_labels": (
        _("Prometheus: labels of the job"),
        _("Labels with Slurm's job number, one per line. Default: hpc_job, slurmjobid, jobid."),
    ),
    "node_labels": (
        _("Prometheus: labels of the node"),
        _("Labels with the node's name, one per line. Default: Hostname, node, instance."),
    ),
}
"""The label and the help text of each setting."""
