"""The setting `network` of a local cluster: what is refused where a job would share the machine's network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.backends import registry
from jobs.backends.base import Refused, Unreachable
from jobs.backends.local.config import LocalConfig
from jobs.states import State
from tests.jobs.backends.benches import LocalBench, wait_until_over

CHANGES = (
    ({"job_range": "10.66.0.1/16"}, "job_range", "no_range"),
    ({"job_range": "8.0.0.0/8"}, "job_range", "no_range"),
    ({"job_range": "10.66.1.0/25"}, "job_range", "no_range"),
    ({"uplink_range": "fd00::/8"}, "uplink_range", "no_range"),
    ({"uplink_range": "10.0.0.0/8"}, "uplink_range", "overlap"),
    ({"network": "none"}, "network", "choice"),
)


@pytest.mark.parametrize(("settings", "name", "code"), CHANGES)
def test_invalid_network_settings_are_refused_with_their_field(
    settings: dict[str, Any], name: str, code: str
) -> None:
    with pytest.raises(ValueError) as error:
        LocalConfig.from_settings(Path("/nowhere"), settings)
    (problem,) = registry.find("local").problems(error.value)
    assert (problem.name, problem.code) == (name, code)


def test_restricted_job_runs_in_machine_network_only_where_an_admin_chose_it(
    bench_of: Callable[..., LocalBench],
) -> None:
    bench = bench_of(network="host")
    seen = wait_until_over(bench.backend, bench.backend.submit(replace(bench.submission(), egress=())))
    assert seen.state is State.SUCCEEDED
    facilities = bench.backend.inventory().facilities
    assert facilities is not None
    assert (facilities.network, facilities.network_lacks) == ("host", ())


def test_restricted_job_is_refused_where_networks_of_jobs_own_do_not_work(
    bench_of: Callable[..., LocalBench],
) -> None:
    bench = bench_of(isolation="none")
    with pytest.raises(Refused) as refused:
        bench.backend.submit(replace(bench.submission(), egress=("192.0.2.0/24:443",)))
    assert refused.value.reason.params["why"] == "egress_not_enforced"
    facilities = bench.backend.inventory().facilities
    assert facilities is not None
    assert (facilities.network, facilities.network_lacks) == ("", ("user namespaces",))


def test_cluster_that_demands_own_networks_names_what_is_missing(tmp_path: Path) -> None:
    bench = LocalBench(tmp_path, {"network": "own", "isolation": "none"})
    for act in (bench.backend.inventory, lambda: bench.backend.submit(bench.submission())):
        with pytest.raises(Unreachable, match="lacks user namespaces"):
            act()
