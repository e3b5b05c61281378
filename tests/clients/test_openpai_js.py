"""OpenPAI's JavaScript SDK, unchanged, runs jobs on a console with the real local backend."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from quotas.accounts import tokens
from quotas.models import User
from tests.clients import environments
from tests.factories import PASSWORD

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed"),
]

SECONDS = 180
V1 = {
    "jobName": "from_js",
    "image": "python:3.12",
    "taskRoles": [
        {
            "name": "main",
            "taskNumber": 1,
            "cpuNumber": 1,
            "memoryMB": 512,
            "gpuNumber": 0,
            "minFailedTaskCount": 1,
            "minSucceededTaskCount": None,
            "portList": [],
            "command": "echo $GREETING from the SDK",
        }
    ],
    "jobEnvs": {"GREETING": "hello"},
}
V2 = {
    "protocolVersion": 2,
    "name": "from_js",
    "type": "job",
    "prerequisites": [{"name": "image", "type": "dockerimage", "uri": "python:3.12"}],
    "taskRoles": {
        "main": {
            "instances": 1,
            "dockerImage": "image",
            "resourcePerInstance": {"cpu": 1, "memoryMB": 512, "gpu": 0},
            "commands": ["echo hello from the SDK"],
        }
    },
}


def run(script: str, server: str, job_file: dict[str, Any]) -> dict[str, Any]:
    """Run a script of this folder with the SDK; return the answers that it printed."""
    folder = environments.node_modules("openpai-js")
    environ = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    environ |= {
        "NODE_PATH": str(folder / "node_modules"),
        "SERVER": server,
        "USER_NAME": "olga",
        "PASSWORD": PASSWORD,
        "JOB_FILE": json.dumps(job_file),
    }
    done = subprocess.run(
        ["node", str(Path(__file__).parent / script)],
        env=environ,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


def test_sdk_v1_runs_job_to_its_end(console: str, person: User) -> None:
    token = tokens.issue(person, scopes=("read",), lifetime=timedelta(hours=1))
    host = console.removeprefix("http://")
    answers = run("openpai_v1.js", f"olga:{token}@{host}/rest-server", V1)
    assert answers["login"]["user"] == "olga"
    assert answers["info"]["authn_type"] == "basic"
    assert answers["submitted"]["jobStatus"]["state"] == "WAITING"
    status = answers["ended"]["jobStatus"]
    assert (status["state"], status["appExitCode"]) == ("SUCCEEDED", 0)
    (task,) = answers["ended"]["taskRoles"]["main"]["taskStatuses"]
    assert (task["taskState"], task["containerExitCode"]) == ("SUCCEEDED", 0)
    assert [job["name"] for job in answers["list"]] == ["from_js"]
    assert answers["mine"] == answers["list"]
    assert answers["framework"]["jobStatus"]["state"] == "SUCCEEDED"
    assert answers["config"]["taskRoles"][0]["taskNumber"] == 1
    assert answers["ssh"]["code"] in {"NoJobSshInfoError", "ForbiddenUserError"}
    assert answers["conflict"] == {"code": "ConflictJobError", "message": "Job name from_js already exists"}
    assert answers["executed"] == {"message": "execute job olga~long successfully"}
    assert answers["stopped"]["jobStatus"]["state"] == "STOPPED"
    assert answers["deleted"] == {"message": "deleted job olga~from_js successfully"}
    assert answers["revoked"] == {"message": "revoke successfully"}


def test_sdk_v2_runs_job_to_its_end(console: str, person: User) -> None:
    answers = run("openpai_v2.js", f"{console}/rest-server", V2)
    assert answers["created"] == {
        "status": 202,
        "message": "Update job from_js for user olga successfully.",
    }
    assert answers["ended"]["jobStatus"]["state"] == "SUCCEEDED"
    assert answers["counted"]["totalCount"] == 1
    assert answers["config"]["name"] == "from_js"
    assert answers["log"] == {"status": 200, "text": "hello from the SDK\n"}
    assert answers["tail"] == answers["log"]
    assert answers["task"]["attempts"][0]["containerExitCode"] == 0
    assert answers["events"]["totalCount"] > 2
    assert answers["healthy"] == "ok"
    assert answers["attempts"][0]["isLatest"] is True
    assert answers["user"]["virtualCluster"] == ["default"]
    assert answers["users"]["data"]["code"] == "ForbiddenUserError"
    assert answers["cluster"] == answers["clusters"]["default"]
    assert [group["groupname"] for group in answers["groups"]] == ["vision"]
    assert answers["members"] == [{"username": "olga"}]
    assert answers["conflict"]["data"]["code"] == "ConflictJobError"
    assert answers["missing"] == {
        "status": 404,
        "data": {"code": "NoJobError", "message": "Job olga~nothing is not found."},
    }
    assert answers["stopped"]["jobStatus"]["state"] == "STOPPED"
    assert answers["revoked"] == {"message": "revoke successfully"}
    assert answers["signedOut"] == {"message": "revoke successfully"}
