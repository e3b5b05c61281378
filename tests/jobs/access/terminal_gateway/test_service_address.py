"""A running job asks the console who it is, at the service address of its own network."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable

import pytest
from django.conf import LazySettings

from jobs.backends.local import machine
from jobs.node.network.service import SOCKET
from tests.jobs.access.terminal_gateway.conftest import Place
from tests.serving import job_service
from tests.waiting import wait_for

ASKS = """
import http.client, json, socket, time
print("up", flush=True)

def ask(target, **headers):
    connection = http.client.HTTPConnection("169.254.77.1", timeout=30)
    connection.request("GET", target, headers=headers)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())

while True:
    try:
        own = ask("/v1/job", **{"Job-Console-Attempt": "other", "Job-Console-Replica": "7"})
        if own[0] != 503:
            break
    except OSError:
        pass
    time.sleep(0.05)
print(json.dumps([own, ask("/metrics"), socket.gethostbyname(socket.gethostname())]), flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("begin_job", ["own"], indirect=True)
def test_job_learns_who_it_is_from_its_service_address(
    begin_job: Callable[..., Place], settings: LazySettings
) -> None:
    if lacking := machine.network_lacks(machine.detect_isolation("python3")):
        pytest.skip(f"networks of jobs' own need {', '.join(lacking)}")
    place = begin_job(f"exec python3 -c {shlex.quote(ASKS)}")
    with job_service(settings.CONSOLE_HOME / SOCKET):
        wait_for(lambda: len(place.log().splitlines()) == 2)
    own, metrics, address = json.loads(place.log().splitlines()[1])
    assert own[0] == 200
    assert own[1] == {
        "id": place.job.public_id,
        "name": place.job.name,
        "attempt": 1,
        "role": "Main_Role",
        "index": 0,
        "state": "RUNNING",
    }
    assert metrics == [404, {"error": "Not Found"}]
    assert address == "10.66.0.2"
