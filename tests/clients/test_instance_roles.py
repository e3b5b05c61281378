"""A job's program gets the credentials of its role by Alibaba's own SDK, from a stand-in for its STS."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from django.conf import LazySettings

from jobs.backends.local import machine
from jobs.node.network.service import ALIBABA_PATH
from quotas.models import Cluster, User
from tests import role_jobs
from tests.alibaba_sts import KEY_ID, AlibabaSts, alibaba_sts
from tests.clients import environments
from tests.factories import make_cluster
from tests.jobs.client.conftest import person, worker

__all__ = ["alibaba_sts", "person", "worker"]

pytestmark = pytest.mark.once

UNUSED: Final = ("pip", "setuptools", "cryptography", "alibabacloud_aiworkspace", "alibabacloud_pai_dlc")
READS: Final = """
import os
from alibabacloud_credentials.client import Client
print("port", os.environ["ALIBABA_CLOUD_CREDENTIALS_URI"].split("/")[2].partition(":")[2], flush=True)
client = Client()

def read():
    found = client.get_credential()
    return found.access_key_id, found.access_key_secret, found.security_token
"""


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """Alibaba's SDK of credentials, for the job's user."""
    environment = environments.python("dlc-1.11.6").parents[1]
    (source,) = environment.glob("lib/python*/site-packages")
    names = (each.name for each in source.iterdir() if not each.name.startswith(UNUSED))
    role_jobs.copy_packages(source, tmp_path / "packages", *names)
    return tmp_path / "packages"


@pytest.fixture
def backend() -> str:
    return "local"


@pytest.fixture
def cluster(
    transactional_db: None,
    settings: LazySettings,
    packages: Path,
    backend: str,
    request: pytest.FixtureRequest,
) -> Cluster:
    if backend == "slurm":
        return role_jobs.make_slurm_cluster(request.getfixturevalue("slurm"))
    if lacking := machine.network_lacks(machine.detect_isolation("python3")):
        pytest.skip(f"networks of jobs' own need {', '.join(lacking)}")
    settings.CONSOLE_LOCAL = {"gpus": {}, "engine": "none", "show": [str(packages)]}
    return make_cluster("local", config={"network": "own"})


@pytest.mark.parametrize("backend", ["local", "slurm"])
def test_job_of_alibaba_role_reads_credentials_with_the_real_sdk(
    backend: str,
    alibaba_sts: AlibabaSts,
    worker: None,
    person: User,
    packages: Path,
    settings: LazySettings,
) -> None:
    settings.CONSOLE_EGRESS_HOSTS = [alibaba_sts.url]
    columns = {"arn": "acs:ram::123456:role/trainer", "access_key_id": KEY_ID}
    role_jobs.make_role(person.memberships.get().workspace, endpoint=alibaba_sts.url, **columns)
    with role_jobs.run(person, packages, READS) as running:
        if backend == "slurm":
            role_jobs.check_beside(running, is_token_sent=False)
        else:
            role_jobs.check(running, ALIBABA_PATH)
    assert {call["RoleArn"] for call in alibaba_sts.calls} == {"acs:ram::123456:role/trainer"}
