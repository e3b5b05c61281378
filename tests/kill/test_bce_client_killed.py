"""Killed while Baidu's own client creates a job: it is created once, however often the client repeats."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Final

import pytest

from tests.clients import environments
from tests.kill.conftest import Arena
from tests.waiting import wait_for

pytestmark = pytest.mark.kill

SECONDS: Final = 180

CREATE: Final = """
import os, time
from baidubce.auth.bce_credentials import BceCredentials
from baidubce.bce_client_configuration import BceClientConfiguration
from baidubce.exception import BceHttpClientError
from baidubce.services.aihc.aihc_client import AihcClient

credentials = BceCredentials(os.environ["KEY"], os.environ["SECRET"])
client = AihcClient(BceClientConfiguration(credentials=credentials, endpoint=os.environ["ENDPOINT"]))
while True:
    try:
        spec = {"image": "any", "replicas": 1}
        print(client.job.CreateJob("aihc-serverless", "default", os.environ["NAME"], "true", spec).jobId)
        break
    except BceHttpClientError as error:
        if isinstance(error.last_error, OSError) or error.status_code in {500, 503}:
            time.sleep(0.2)
        else:
            raise
"""
"""The client repeats three times by itself, and its user until the console is there again."""


@pytest.mark.parametrize("point", ["accept.before_commit", "accept.after_commit"])
def test_bce_client_web_server_killed_creates_one_job(arena: Arena, point: str) -> None:
    name = point.replace("_", "-").replace(".", "-")
    issued = json.loads(arena.stack.manage("issue_access_key", "admin"))
    arena.arm(point, "KILL")
    inherited = {key: value for key, value in os.environ.items() if "proxy" not in key.lower()}
    done = subprocess.run(
        [str(environments.python("bce")), "-c", CREATE],
        env={
            **inherited,
            "KEY": issued["access_key_id"],
            "SECRET": issued["access_key_secret"],
            "ENDPOINT": arena.stack.base_url,
            "NAME": name,
        },
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert arena.taken(point) is not None
    with arena.api() as api:
        jobs = api.get("jobs", params={"name": name}).json()["jobs"]
    assert [f"job-{job['id']}" for job in jobs] == [done.stdout.strip()]
    wait_for(lambda: arena.job(jobs[0]["id"]).get("state") == "SUCCEEDED", SECONDS)
