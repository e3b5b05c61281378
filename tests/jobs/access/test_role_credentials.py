"""A job's program gets the credentials of its role by AWS's own SDK, from moto's STS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import boto3  # type: ignore[import-untyped]
import pytest
from django.conf import LazySettings
from moto.server import ThreadedMotoServer

from jobs.backends.local import machine
from jobs.node.network.service import AWS_PATH
from quotas.models import Cluster, User
from tests import role_jobs
from tests.factories import make_cluster
from tests.jobs.client.conftest import person, worker
from tests.waiting import wait_for

__all__ = ["person", "worker"]

PACKAGES: Final = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "urllib3", "six.py")
READS: Final = """
import os, boto3
print("port", os.environ["AWS_CONTAINER_CREDENTIALS_FULL_URI"].split("/")[2].partition(":")[2])
token = os.stat(os.environ["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"])
assert token.st_mode & 0o777 == 0o600 and token.st_uid == os.getuid(), token
found = boto3.Session().get_credentials()
print(found.method, flush=True)

def read():
    return found.get_frozen_credentials()[:3]
"""


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """AWS's SDK, for the job's user."""
    source, target = Path(boto3.__file__).parents[1], tmp_path / "packages"
    role_jobs.copy_packages(source, target, *PACKAGES)
    return target


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
    return make_cluster("local", config={"network": "host" if backend == "host" else "own"})


@pytest.fixture
def moto_sts(settings: LazySettings) -> Iterator[str]:
    """The address of moto's STS."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    settings.CONSOLE_EGRESS_HOSTS = [f"http://{host}:{port}"]
    yield f"http://{host}:{port}"
    server.stop()


@pytest.mark.parametrize("backend", ["local", "host", "slurm"])
def test_job_of_aws_role_reads_credentials_with_the_real_sdk(
    backend: str, moto_sts: str, worker: None, person: User, packages: Path
) -> None:
    arn = "arn:aws:iam::123456789012:role/trainer"
    workspace = person.memberships.get().workspace
    columns = {"provider": "aws", "arn": arn, "access_key_id": "AKIAROLECONSOLE"}
    role_jobs.make_role(workspace, endpoint=moto_sts, **columns)
    with role_jobs.run(person, packages, READS) as running:
        wait_for(lambda: "container-role" in running.lines(), 60)
        if backend == "local":
            role_jobs.check(running, AWS_PATH)
        else:
            role_jobs.check_beside(running, is_token_sent=True, has_file=backend == "slurm")
