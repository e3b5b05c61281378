"""The rows of the vendors' pages come true on a local cluster, or are told of before a job is submitted."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import LazySettings

from jobs.client.python_client import Client
from jobs.states import State
from quotas.accounts import tokens
from quotas.models import Cluster, Kind, Role, Source, User
from tests import mission
from tests.factories import make_cluster, make_job, make_quota, make_spec, make_user, make_workspace
from tests.jobs.backends.conftest import place
from tests.jobs.backends.local import goods

__all__ = ["place"]
pytestmark = pytest.mark.once


@pytest.fixture
def cluster(transactional_db: None, settings: LazySettings, place: Path) -> Cluster:
    """This machine without an engine, with a dataset and a code source that the rows name."""
    goods.repository(place / "repo")
    for name in ("tiny", "other"):
        goods.wheel(place / "repo", name)
    requirements = "--no-index\n--find-links /root/code\nother==1.0\n"
    (place / "repo" / "requirements.txt").write_text(requirements)
    goods.git(place / "repo", "add", ".")
    goods.git(place / "repo", "commit", "--quiet", "--message", "requirements")
    (place / "sets" / "train").write_text("1\n")
    settings.CONSOLE_LOCAL = {
        "cpu_milli": 32_000,
        "memory_mib": 65536,
        "gpus": {},
        "engine": "none",
        "allow_plain": True,
        "folders": {str(place): {"workspaces": ["*"]}},
        "datasets": {"d-1": str(place / "sets")},
        "code_sources": {"code-1": {"uri": f"file://{place}/repo"}},
    }
    return make_cluster("local")


@pytest.fixture
def person(cluster: Cluster) -> User:
    """A member of a workspace with a quota of each sort, who has a job of the name `taken`."""
    made = make_user("olga")
    workspace = make_workspace("vision", members={made: Role.DEVELOPER})
    quota = make_quota(workspace, cluster, "default")
    make_quota(workspace, cluster, "lingjun", kind=Kind.LINGJUN)
    make_quota(workspace, cluster, "public", source=Source.PUBLIC, person_gpus=2, person_cpu_milli=8000)
    make_quota(workspace, cluster, "spot", source=Source.PREEMPTIBLE)
    make_job(State.SUCCEEDED, owner=made, quota=quota, spec=make_spec(name="taken"))
    return made


def test_rows_of_the_pages_come_true_or_are_told_of(console: str, person: User) -> None:
    token = tokens.issue(person, scopes=tokens.SCOPES, lifetime=timedelta(hours=1))
    with Client(console, token) as client:
        jobs = {name: client.submit(text, quota="default") for name, text in mission.files().items()}
        ended = {name: client.wait(job.id, 60) for name, job in jobs.items()}
        logs = {name: b"".join(client.logs(job.id)).decode() for name, job in jobs.items()}
    assert {job.state for job in ended.values()} == {"SUCCEEDED"}, logs
    outcomes = mission.judge(person, logs)
    sys.stdout.write(mission.table(outcomes))
    expected = {mission.title(row): row.outcome for row in mission.ROWS}
    wrong = {name for name, outcome in outcomes.items() if outcome is not expected[name]}
    assert not wrong
