"""The rows of the vendors' pages come true here and on Slurm, or are told of before a job is submitted.

Their job files run in their own images, where an engine has images of these names.
"""

from __future__ import annotations

import re
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import LazySettings

from jobs.client.errors import InvalidRequestError
from jobs.client.python_client import Client
from jobs.models import CodeSource, Replica
from jobs.node.sandbox import engine
from jobs.states import State
from quotas.accounts import tokens
from quotas.models import Admission, Cluster, Kind, Quota, Role, Source, User
from tests import mission
from tests.factories import (
    make_cluster,
    make_job,
    make_quota,
    make_site_storage,
    make_spec,
    make_user,
    make_workspace,
)
from tests.jobs.backends.conftest import place
from tests.jobs.backends.local import goods
from tests.jobs.backends.local.images import IMAGE, store
from tests.seeds import SEEDS
from tests.slurm import Slurm
from tests.waiting import wait_for

__all__ = ["place", "store"]
pytestmark = pytest.mark.once


@pytest.fixture
def cluster(transactional_db: None, settings: LazySettings, place: Path, slurm: Slurm) -> Cluster:
    """This machine and a Slurm, without images, with a dataset and a code source that the rows name."""
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
        "folders": {str(place): {"workspaces": ["*"]}},
    }
    make_site_storage("d-1", str(place / "sets"))
    CodeSource.objects.create(key="code-1", name="code", repo=f"file://{place}/repo")
    config = {"configuration": str(slurm.configuration), "allow_plain": True}
    make_cluster(mission.SLURM, backend="slurm", config=config, admission=Admission.ENGINE)
    return make_cluster(mission.LOCAL, config={"gpus": {}, "engine": "none", "allow_plain": True})


@pytest.fixture
def person(cluster: Cluster) -> User:
    """A member of a workspace with a quota of each sort, who has a job of the name `taken`."""
    made = make_user("olga")
    workspace = make_workspace("vision", members={made: Role.DEVELOPER})
    for each in Cluster.objects.all():
        make_quota(workspace, each, "default")
        make_quota(workspace, each, "lingjun", kind=Kind.LINGJUN)
        make_quota(workspace, each, "public", source=Source.PUBLIC, person_gpus=2, person_cpu_milli=8000)
        make_quota(workspace, each, "spot", source=Source.PREEMPTIBLE)
        make_quota(workspace, each, "lingjun-spot", source=Source.PREEMPTIBLE, kind=Kind.LINGJUN)
    usual = Quota.objects.get(cluster=cluster, slug="default")
    make_job(State.SUCCEEDED, owner=made, quota=usual, spec=make_spec(name="taken"))
    return made


def test_rows_of_the_pages_come_true_or_are_told_of(console: str, person: User) -> None:
    token = tokens.issue(person, scopes=tokens.SCOPES, lifetime=timedelta(hours=1))
    with Client(console, token) as client:
        jobs = {
            (cluster, name): client.submit(text, cluster=cluster, quota="default")
            for cluster in mission.CLUSTERS
            for name, text in mission.files().items()
        }
        ended = {key: client.wait(job.id, 90) for key, job in jobs.items()}
        logs = {key: b"".join(client.logs(job.id)).decode() for key, job in jobs.items()}
    assert {job.state for job in ended.values()} == {"SUCCEEDED"}, logs
    outcomes = {
        cluster: mission.judge(person, cluster, {name: logs[cluster, name] for name in mission.JOBS})
        for cluster in mission.CLUSTERS
    }
    mission.publish(mission.table(outcomes))
    wrong = {
        (cluster, mission.title(row))
        for cluster in mission.CLUSTERS
        for row in mission.ROWS
        if mission.is_tried(row, cluster)
        and outcomes[cluster][mission.title(row)] is not mission.expected(row, cluster)
    }
    assert not wrong


@pytest.fixture
def engine_cluster(person: User, store: tuple[str, ...]) -> Cluster:
    """This machine with an engine that has the images of the pages, under the names that they print."""
    podman = engine.Engine(engine.detect("podman", store).command)
    for name in {seed.spec.roles[0].image for seed in SEEDS if not seed.placeholder}:
        subprocess.run([*podman.prefix, "tag", IMAGE, podman.pull(name, None)[-1]], check=True)
    cluster = Cluster.objects.get(slug=mission.LOCAL)
    cluster.config = {"engine": "podman", "engine_options": store, "gpus": {"TITANX": 1}}
    cluster.save()
    return cluster


def test_job_files_of_the_pages_run_in_their_images_or_are_refused(
    engine_cluster: Cluster, console: str, person: User
) -> None:
    """A file that goes on for long is stopped once it has said its first words."""
    token = tokens.issue(person, scopes=tokens.SCOPES, lifetime=timedelta(hours=1))
    outcomes, started = {}, {}
    with Client(console, token) as client:
        for seed in SEEDS:
            if lacks := seed.lacks or seed.placeholder:
                with pytest.raises(InvalidRequestError, match=re.escape(lacks)) as refused:
                    client.submit(seed.text, cluster=engine_cluster.slug)
                outcomes[str(seed)] = f"refused at check time: {refused.value}"
            else:
                started[seed] = client.submit(seed.text, cluster=engine_cluster.slug).id
        for seed, job in started.items():
            wait_for(lambda: seed.says.encode() in b"".join(client.logs(job)), 90, 0.5)  # noqa: B023 - used up here
            if "sleep" in seed.text:
                client.stop(job)
        ends = {seed: client.wait(job, 60).state for seed, job in started.items()}
    assert ends == {seed: "STOPPED" if "sleep" in seed.text else "SUCCEEDED" for seed in started}
    theirs = Replica.objects.exclude(attempt__job__name="taken")
    assert set(theirs.values_list("image_used", flat=True)) == {True}
    outcomes |= {str(seed): f"{state} after “{seed.says}”" for seed, state in ends.items()}
    mission.publish(mission.sample_table("local, in their images", outcomes))
