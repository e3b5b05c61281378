"""Alert rules and dashboard in docs/monitoring, against what /metrics answers."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from django.test import Client

from console.home import CHECKOUT
from jobs.client.wheel_builder import version
from jobs.live import timings
from tests.factories import make_cluster, make_user
from tests.required import skip_without

KIT = CHECKOUT / "docs" / "monitoring"
NAME = re.compile(r"\bconsole_[a-z_]+")


@pytest.fixture
def text(client: Client, db: None) -> str:
    """An answer with at least one sample of each histogram."""
    make_cluster("a100")
    timings.record_start("a100", 3)
    with timings.engine_call("a100", "observe"):
        pass
    client.force_login(make_user(admin=True))
    client.get("/metrics")
    return client.get("/metrics").content.decode()


def names(text: str) -> set[str]:
    """Return the metrics that a text names, without what Prometheus adds to a histogram's name."""
    return {re.sub(r"_(bucket|count|sum|created)$", "", name) for name in NAME.findall(text)}


@pytest.mark.parametrize("file", ["alerts.yaml", "alerts-test.yaml", "grafana.json", "../monitoring.md"])
def test_kit_names_only_metrics_that_are_answered(file: str, text: str) -> None:
    answered = names("\n".join(line for line in text.splitlines() if line.startswith("# TYPE")))
    named = names((KIT / file).read_text())
    assert named
    assert named <= answered
    if file == "../monitoring.md":
        assert answered <= named


def test_dashboard_has_a_title_and_a_query_for_each_panel() -> None:
    board = json.loads((KIT / "grafana.json").read_text())
    assert board["panels"]
    assert all(panel["title"] and panel["targets"] for panel in board["panels"])
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board["panels"]]
    assert len(set(places)) == len(places)


def test_timings_have_route_status_and_release(text: str) -> None:
    told = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    for sample in (
        'console_http_request_duration_seconds_count{method="GET",route="metrics",status="200"}',
        'console_engine_call_duration_seconds_count{call="observe",cluster="a100"}',
        'console_submit_to_start_seconds_bucket{cluster="a100",le="5.0"}',
        f'console_build_info{{version="{version()}"}}',
    ):
        assert float(told[sample]) >= 1


def test_promtool_accepts_answer_rules_and_their_tests(text: str, tmp_path: Path) -> None:
    skip_without("promtool", "prometheus")
    for command in (
        ["check", "rules", str(KIT / "alerts.yaml")],
        ["test", "rules", str(KIT / "alerts-test.yaml")],
    ):
        done = subprocess.run(["promtool", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    told = [line for line in done.stderr.splitlines() if line.startswith("console_")]
    assert (done.returncode, told) == (0, [])
