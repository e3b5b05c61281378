"""The samples of PAI-DLC's pages that name things of a site, as they stand, where an admin registered those.

Each release of the SDK creates the request of page 001 and the preemptible jobs of page 003, and waits.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest
from django.conf import LazySettings

from jobs.models import Job
from quotas.accounts import access_keys, tokens
from quotas.models import Cluster, Role, Source, Spec, SpotPrice, User
from tests.clients.test_dlc_sdk import RELEASES, Sdk, printed_samples
from tests.factories import make_cluster, make_quota, make_user, make_workspace
from tests.jobs.backends.local import goods

pytestmark = pytest.mark.once

WORKSPACE: Final = "12****"
REQUEST: Final = "001-dlc-tfjob.json"
SPOT: Final = ("003-dlc-sdk-spot-discount.json", "003-dlc-sdk-spot-price.json")
DATA: Final = Path("/mnt/data")
"""The folder of the machine that the command of page 003 lists: the page's jobs mount no dataset."""

CREATE: Final = """
made = {name: client.create_job(request_of(body)).body.job_id
        for name, body in json.loads(os.environ["SAMPLES"]).items()}
for name, job in made.items():
    ended = wait(job, *ENDS)
    say(name, {"status": ended.status, "reason": ended.reason_code, "replicas": len(ended.pods)})
say("listed", sorted(names(workspace_id="12****", show_own=True)))
"""


@pytest.fixture
def site() -> Iterator[Path]:
    """What the page 001 names, on this machine: a dataset, and a repository with a package index."""
    if os.geteuid():
        pytest.skip("only root makes the folder /mnt/data")
    made = Path(tempfile.mkdtemp(prefix="job-console-test-", dir="/var/tmp"))
    made.chmod(0o755)
    (made / "sets").mkdir()
    (made / "sets" / "train").write_text("1 2 3\n")
    goods.repository(made / "repo")
    goods.wheel(made / "repo", "numpy", "1.16.1")
    (made / "repo" / "requirements.txt").write_text("--no-index\n--find-links /root/code\n")
    (made / "repo" / "mnist.py").write_text("import numpy\nprint(open('/root/data/nas1/train').read())\n")
    goods.git(made / "repo", "add", ".")
    goods.git(made / "repo", "commit", "--quiet", "--message", "mnist")
    goods.git(made / "repo", "branch", "--move", "master")
    has_data = DATA.exists()
    DATA.mkdir(exist_ok=True)
    yield made
    shutil.rmtree(made)
    if not has_data:
        DATA.rmdir()


@pytest.fixture
def cluster(transactional_db: None, settings: LazySettings, site: Path) -> Cluster:
    """This machine, with the ids of page 001 in its settings."""
    settings.CONSOLE_LOCAL = {
        "cpu_milli": 200_000,
        "memory_mib": 4_194_304,
        "gpus": {"V100": 3 * len(RELEASES)},
        "engine": "none",
        "allow_plain": True,
        "folders": {str(site): {"workspaces": ["*"]}},
        "datasets": {"d-*****": {"folder": str(site / "sets"), "path": "/root/data/nas1"}},
        "code_sources": {"code-****": {"uri": f"file://{site}/repo", "path": "/root/code"}},
    }
    return make_cluster("local")


@pytest.fixture
def person(cluster: Cluster) -> User:
    """A member of the workspace of page 003, whose jobs are preemptible, and of a usual one."""
    made = make_user("olga")
    spot = make_workspace("spot", members={made: Role.DEVELOPER}, vendor_id=WORKSPACE, name="Spot")
    make_quota(spot, cluster, "cheap", source=Source.PREEMPTIBLE)
    make_quota(make_workspace("a-usual-one", members={made: Role.DEVELOPER}), cluster, "default")
    for name, cores, gib, gpus in (
        ("ecs.g7.xlarge", 4, 16, {}),
        ("ecs.gn6e-c12g1.3xlarge", 12, 92, {"V100": 1}),
    ):
        Spec.objects.create(name=name, cpu_milli=cores * 1000, memory_mib=gib * 1024, gpus=gpus)
    SpotPrice.objects.create(cluster=cluster, gpu_type="", market_micro=10_000, price_micro=2_000)
    return made


def test_samples_that_name_things_of_the_site_succeed_unchanged(console: str, person: User) -> None:
    issued = access_keys.issue(person, scopes=tokens.SCOPES)
    environ = {
        "ENDPOINT": console.removeprefix("http://"),
        "ALIBABA_CLOUD_ACCESS_KEY_ID": issued.row.key_id,
        "ALIBABA_CLOUD_ACCESS_KEY_SECRET": issued.secret,
    }
    samples = {name: body for name, body in printed_samples().items() if name in (REQUEST, *SPOT)}
    with ThreadPoolExecutor(len(RELEASES)) as threads:
        runs = [
            threads.submit(Sdk(release, environ).run, CREATE, SAMPLES=json.dumps(samples))
            for release in RELEASES
        ]
    for run in runs:
        said = run.result()
        assert said[REQUEST] == {"status": "Succeeded", "reason": "JobSucceeded", "replicas": 3}
        for name in SPOT:
            assert said[name] == {"status": "Succeeded", "reason": "JobSucceeded", "replicas": 1}
        assert set(said["listed"]) == {"sample-spot-job"}
    assert set(Job.objects.values_list("workspace__slug", flat=True)) == {"spot", "a-usual-one"}
