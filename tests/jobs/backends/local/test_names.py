"""Replicas with a network of their own: how they find each other, and how their ports are found."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from jobs.backends.base import EndpointSeen, Handle, Observation, Submission
from jobs.backends.local import machine
from jobs.node.sandbox.isolation import Isolation
from jobs.spec import Framework, Port
from jobs.states import PortSource, Unready
from tests.jobs.backends.benches import LocalBench, log_of, replica, role, wait_until_over
from tests.waiting import wait_for

ANSWERS = """
import http.server, os, socket, sys
http.server.HTTPServer.address_family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if os.path.exists("loaded") else 503)
        self.end_headers()
    def log_message(self, *args):
        pass
http.server.HTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"""

CONNECTS = """
import os, socket, sys, time
def reach(host, port):
    for _again in range(200):
        try:
            return socket.create_connection((host, int(port)), 5).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise SystemExit(f"nobody is at {host}:{port}")
name, env = os.environ["JOB_NAME"], os.environ
port = env["CUSTOM_PORTS"].split(";")[1]
for host in (f"{name}-worker-1", f"{name}-Worker-1", "worker-1", env["PAI_HOST_IP_worker_1"]):
    reach(host, port)
reach(env["MASTER_ADDR"], env["MASTER_PORT"])
reach(f"{name}-master-0", env["MASTER_PORT"])
reach(*env["PAI_TASK_ROLE_master_HOST_LIST"].split(":"))
assert socket.gethostbyname(socket.gethostname()) == env["PAI_CONTAINER_HOST_IP"], socket.gethostname()
print(socket.gethostname(), open("/etc/hostname").read(), len(env["CUSTOM_PORTS"].split(";")))
"""


@pytest.fixture(params=[Isolation.PERSONS, Isolation.NAMESPACES])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalBench]:
    """Benches whose jobs have networks of their own."""
    made = LocalBench(tmp_path, {"isolation": request.param, "network": "own"})
    if machine.network_lacks(request.param) or request.param not in made_possible(made):
        pytest.skip(f"no own networks with {request.param} here")
    yield made
    made.close()


def made_possible(bench: LocalBench) -> tuple[Isolation, ...]:
    """The modes that this user may have."""
    best = machine.detect_isolation(bench.config.python)
    return (Isolation.PERSONS, Isolation.NAMESPACES) if best is Isolation.PERSONS else (best,)


def python(text: str, *arguments: str) -> str:
    return f"exec python3 -c {shlex.quote(text)} {' '.join(arguments)}"


def submit(bench: LocalBench, submission: Submission) -> Handle:
    """Submit a job that may connect to its own replicas alone."""
    return bench.backend.submit(replace(submission, egress=()))


def find(bench: LocalBench, handle: Handle, wanted: Callable[[EndpointSeen], bool]) -> EndpointSeen | None:
    """The first endpoint for which `wanted` holds."""
    seen = bench.backend.observe([handle])[handle]
    assert isinstance(seen, Observation)
    return next(filter(wanted, replica(seen).endpoints), None)


def test_replicas_find_each_other_by_name_and_by_every_variable(bench: LocalBench) -> None:
    serves = python(ANSWERS, "0.0.0.0", "$PAI_CONTAINER_HOST_PORT")
    custom = python(ANSWERS, "0.0.0.0", "$(echo $CUSTOM_PORTS | cut -d';' -f2)")
    worker = f"if [ $PAI_TASK_INDEX = 1 ]; then {custom}; else {python(CONNECTS)}; fi"
    options = {"createSvcForAllWorkers": "true", "customPortNumPerWorker": "2"}
    submission = bench.submission(
        role(serves, "master"),
        role(worker, replicas=2, completion={"min_succeeded": 1}),
        framework=Framework.PYTORCH,
        framework_options=options,
    )
    handle = submit(bench, submission)
    wait_until_over(bench.backend, handle)
    name = f"{submission.job_id}-worker-0"
    assert log_of(bench.backend, handle).split() == [name, name, "2"]


def test_jobs_with_same_fixed_port_run_side_by_side_on_loopback(bench: LocalBench) -> None:
    asked = role(python(ANSWERS, "127.0.0.1", "8888"), ports=(Port(label="web", begin_at=8888),))
    handles = [submit(bench, bench.submission(asked)) for _job in range(2)]
    for handle in handles:
        found = wait_for(partial(find, bench, handle, lambda each: each.ready))
        assert found is not None
        assert (found.label, found.host, found.port) == ("web", "10.66.0.2", 8888)


def test_ports_are_found_and_probed_in_replicas_own_network(bench: LocalBench) -> None:
    said = '{"label": "model", "port": 9000, "probe": "/health"}'
    waits = f"(while [ ! -e {bench.judge / 'go'} ]; do sleep 0.1; done; touch loaded) &"
    command = (
        f'echo {shlex.quote(said)} >> "$JOB_CONSOLE_ENDPOINTS"; {waits} '
        f"({python(ANSWERS, '::1', '7000')}) & {python(ANSWERS, '127.0.0.1', '9000')}"
    )
    asked = role(command, ports=(Port(label="model", begin_at=9000),))
    handle = submit(bench, bench.submission(asked))
    wait_for(lambda: find(bench, handle, lambda each: each.why is Unready.STATUS))
    (bench.judge / "go").touch()
    wait_for(lambda: find(bench, handle, lambda each: each.label == "model" and each.ready))
    wait_for(lambda: find(bench, handle, lambda each: (each.port, each.source) == (7000, PortSource.FOUND)))
