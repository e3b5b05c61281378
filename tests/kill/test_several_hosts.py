"""Two hosts behind a load balancer serve one console: one is lost, and nobody but its connections knows.

Each host is a network namespace with a whole console in it, which reaches PostgreSQL, Redis and Slurm over a
cable that can be cut; all processes of one can be killed at once.  The servers and nginx are real, and run
on this machine, as do Slurm's nodes: what is tested is the loss of a console's host, not of a node.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import psutil
import pytest

from tests import networks, postgres
from tests import slurm as slurms
from tests.ports import free_port
from tests.required import skip_without
from tests.serving import RedisServer
from tests.stack import Stack
from tests.waiting import wait_for

pytestmark = pytest.mark.kill

BALANCER: Final = """
daemon off; pid {folder}/pid; error_log {folder}/error;
events {{}}
http {{
    access_log off; client_max_body_size 0; {temporary}
    upstream console {{ {servers} }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://console;
            proxy_http_version 1.1;
            proxy_set_header Host $http_host;
            proxy_set_header Connection "";
            proxy_buffering off; proxy_request_buffering off;
            proxy_connect_timeout 1s; proxy_next_upstream error timeout non_idempotent;
        }}
    }}
}}
"""
CLUSTER: Final = """
from quotas.models import Cluster, Quota, Workspace
config = {config}
cluster = Cluster.objects.create(slug="hpc", name="HPC", backend="slurm", admission="engine", config=config)
Quota.objects.create(workspace=Workspace.objects.get(), cluster=cluster, slug="all", name="All")
"""
LINES: Final = 1000
COUNTS: Final = f"for i in $(seq {LINES}); do echo line $i; sleep 0.01; done"
WHOLE: Final = b"".join(b"line %d\n" % number for number in range(1, LINES + 1))
LEASED: Final = "submit.before_engine"
"""Where a worker has leased an attempt, and is about to submit it."""
LOCKED: Final = "admit.before_commit"
"""Where a worker holds the lock of a cluster's reservations, in a transaction."""
ASK: Final = "import httpx, sys; print(httpx.get(sys.argv[1], timeout=20, trust_env=False).status_code)"


class HostStack(Stack):
    """The console of one host."""

    def __init__(self, environ: Mapping[str, str], host: networks.Host) -> None:
        self.faults = Path(tempfile.mkdtemp(prefix="jc-faults-"))
        own = {
            "CONSOLE_BIND": host.address,
            "CONSOLE_HOSTS": f"127.0.0.1,{host.address}",
            "CONSOLE_FAULTS": str(self.faults),
        }
        super().__init__({**environ, **own})
        self.host = host
        self.base_url = f"http://{host.address}:{self.port}"
        self.run_command = host.enter(self.run_command)

    def frozen(self, point: str = "*") -> list[psutil.Process]:
        """Return the processes that have stopped at a fault point."""
        return [psutil.Process(int(path.suffix[1:])) for path in self.faults.glob(f"{point}.taken.*")]

    def ask_inside(self, path: str) -> str:
        """Return the status of an answer to the host itself; "" where there is none."""
        command = self.host.enter([sys.executable, "-c", ASK, f"{self.base_url}{path}"])
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    def remove(self) -> None:
        """End the console, and delete its folders."""
        super().remove()
        shutil.rmtree(self.faults, ignore_errors=True)


@dataclass
class Site:
    """Two hosts, what they share, the address of the load balancer, and the folder that jobs write to."""

    hosts: tuple[HostStack, HostStack]
    judge: Path
    database: postgres.Server
    broker: RedisServer
    url: str
    token: str

    def ask(self, method: str, path: str, base_url: str = "", **arguments: Any) -> httpx.Response:
        """Ask the native API, by the load balancer or one host."""
        headers = {"Authorization": f"Bearer {self.token}", **arguments.pop("headers", {})}
        address = f"{base_url or self.url}/api/console/v1/{path}"
        with httpx.Client(timeout=30, trust_env=False) as client:
            return client.request(method, address, headers=headers, **arguments)

    def starts(self) -> list[str]:
        """Return the names of all jobs that were started."""
        path = self.judge / "starts"
        return path.read_text().split() if path.exists() else []

    def submit(self, name: str, command: str) -> str:
        """Submit a job that records its start, until the console answers."""
        command = f"echo {name} >> {self.judge}/starts; {command}"
        role = {"name": "w", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 64, "gpuNumber": 0}
        body = {
            "file": json.dumps({"jobName": name, "image": "any", "taskRoles": [role | {"command": command}]})
        }

        def send() -> str:
            with suppress(httpx.HTTPError):
                answer = self.ask("POST", "jobs", json=body, headers={"Idempotency-Key": name})
                assert answer.is_success or answer.status_code >= 500, answer.text
                return str(answer.json()["id"]) if answer.is_success else ""
            return ""

        return wait_for(send, interval=0.1)

    def state(self, public_id: str, base_url: str = "") -> str:
        """Return a job's state; "" while nobody answers."""
        with suppress(httpx.HTTPError):
            answer = self.ask("GET", f"jobs/{public_id}", base_url)
            return str(answer.json()["state"]) if answer.is_success else ""
        return ""

    def log(self, public_id: str, base_url: str = "") -> bytes:
        """Return the whole log of a job."""
        params = {"role": "w", "index": "0", "limit": "1000000"}
        return self.ask("GET", f"jobs/{public_id}/logs", base_url, params=params).content


def lose(host: Stack) -> None:
    """Kill every process of a host at once, as when its power fails; jobs run elsewhere."""
    for process in host.processes():
        with suppress(psutil.NoSuchProcess):
            process.kill()
    host.crash()


@pytest.fixture(autouse=True)
def _nothing_armed() -> None:
    """Start no console with fault points, which the other kill tests share."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    skip_without("nginx", "nginx-light")
    programs = postgres.find_programs()
    if programs is None:
        pytest.skip("there is no PostgreSQL (Debian: postgresql)")
    if lacking := slurms.missing():
        pytest.skip(lacking)
    tmp_path = tmp_path_factory.mktemp("site")
    shared, judge = tmp_path / "shared", tmp_path / "judge"
    shared.mkdir(mode=0o700)
    judge.mkdir()
    with ExitStack() as stack:
        network = stack.enter_context(networks.network())
        slurm = stack.enter_context(slurms.server(address=network.address))
        database = postgres.Server(programs, ("max_connections=200", "jit=off"), network.address)
        stack.callback(database.remove)
        database.start()
        broker = RedisServer(network.address)
        stack.callback(broker.remove)
        broker.start()
        environ = {
            "CONSOLE_SHARED_FOLDER": str(shared),
            "DATABASE_URL": database.url,
            "REDIS_URL": broker.url,
            "CONSOLE_SSH_PORT": "0",
        }
        hosts = (HostStack(environ, network.add()), HostStack(environ, network.add()))
        for host in hosts:
            stack.callback(_remove, host)
        hosts[0].start()
        shutil.copytree(hosts[0].home / "keys", hosts[1].home / "keys", dirs_exist_ok=True)
        hosts[1].start()
        config = {"configuration": str(slurm.configuration), "allow_plain": True}
        hosts[0].python(CLUSTER.format(config=config))
        token = json.loads(hosts[0].manage("issue_token", "admin"))["token"]
        port = free_port()
        balancer = _balance(tmp_path, port, hosts)
        stack.callback(balancer.wait)
        stack.callback(balancer.terminate)
        yield Site(hosts, judge, database, broker, f"http://127.0.0.1:{port}", token)


def _remove(host: HostStack) -> None:
    host.host.mend()
    for process in host.processes():
        with suppress(psutil.NoSuchProcess):
            process.resume()
    del host.environ["DATABASE_URL"]  # which goes as a whole
    host.remove()


def _balance(folder: Path, port: int, hosts: tuple[HostStack, HostStack]) -> subprocess.Popen[bytes]:
    """Start nginx in front of the hosts."""
    names = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    text = BALANCER.format(
        folder=folder,
        port=port,
        temporary="".join(f"{name}_temp_path {folder}/{name}; " for name in names),
        servers="".join(
            f"server {host.host.address}:{host.port} max_fails=1 fail_timeout=2s; " for host in hosts
        ),
    )
    (folder / "nginx.conf").write_text(text)
    process = subprocess.Popen(["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")])
    wait_for(lambda: _answers(f"http://127.0.0.1:{port}/readyz"))
    return process


def _answers(url: str) -> bool:
    with suppress(httpx.HTTPError):
        return httpx.get(url, trust_env=False).is_success
    return False


def test_console_of_two_hosts_outlives_the_loss_of_one(site: Site) -> None:
    first, second = site.hosts
    with closing(first.client()) as browser:  # a sign-in at one host is one at the other
        cookies = {each.name: each.value or "" for each in browser.cookies.jar}
    page = httpx.get(f"{second.base_url}/jobs/", cookies=cookies, trust_env=False)
    assert page.status_code == 200

    long = site.submit("long", COUNTS)
    wait_for(lambda: site.state(long) == "RUNNING")
    wait_for(lambda: b"line 100\n" in site.log(long, first.base_url))
    wait_for(lambda: b"line 100\n" in site.log(long, second.base_url))

    content = b"weights" * 20_000  # its first part comes to one host, the rest to the other
    blob = f"uploads/blobs/{hashlib.sha256(content).hexdigest()}"
    for host, begin, end, status in ((first, 0, 70_000, 202), (second, 70_000, len(content), 201)):
        headers = {"Content-Range": f"bytes {begin}-{end - 1}/{len(content)}"}
        answer = site.ask("PUT", blob, host.base_url, content=content[begin:end], headers=headers)
        assert answer.status_code == status, answer.text

    lose(first)
    short = site.submit("short", "echo done")
    wait_for(lambda: site.state(short) == "SUCCEEDED")
    wait_for(lambda: site.state(long) == "SUCCEEDED", 120)
    assert site.log(long) == WHOLE

    first.start()
    wait_for(lambda: site.log(long, first.base_url) == WHOLE)
    assert site.log(short, first.base_url) == b"done\n"


def test_console_of_two_hosts_goes_on_while_one_is_cut_off(site: Site) -> None:
    first, second = site.hosts
    long = site.submit("cut", COUNTS)
    wait_for(lambda: site.state(long) == "RUNNING")
    wait_for(lambda: b"line 100\n" in site.log(long, second.base_url))
    jobs = [*freeze(site, first, LEASED), *freeze(site, first, LOCKED)]
    programs = {name: first.pid(name) for name in ("web", "worker-control", "worker-logs", "beat", "watch")}

    first.host.cut()
    during = [site.submit(f"during-{number}", "echo done") for number in range(3)]
    for job in (*jobs, *during):  # the other host gets the lock, and what this one has leased
        wait_for(lambda job=job: site.state(job) == "SUCCEEDED")  # type: ignore[misc]
    wait_for(lambda: site.state(long) == "SUCCEEDED", 120)
    assert site.log(long) == WHOLE
    assert first.ask_inside("/readyz") != "200"
    assert {name: first.pid(name) for name in programs} == programs

    first.host.mend()
    for process in first.frozen():
        with suppress(psutil.NoSuchProcess):  # its time is over
            process.resume()  # and submits a job that has long ended
    wait_for(lambda: site.state(long, first.base_url) == "SUCCEEDED")
    first.wait_until("/healthz")
    assert site.log(during[0], first.base_url) == b"done\n"
    after = site.submit("mended", "echo done")
    wait_for(lambda: site.state(after, first.base_url) == "SUCCEEDED")
    names = site.starts()
    assert len(names) == len(set(names))
    assert {"cut", "during-0", "during-1", "during-2", "mended"} < set(names)


def freeze(site: Site, host: HostStack, point: str) -> list[str]:
    """Submit jobs until a worker of the host has stopped at the fault point; return them."""
    (host.faults / point).write_text("STOP")
    jobs: list[str] = []
    while not host.frozen(point):
        jobs.append(site.submit(f"{point}-{len(jobs)}", "echo done"))
        wait_for(lambda: host.frozen(point) or site.state(jobs[-1]) == "SUCCEEDED")
    return jobs


def test_restore_of_another_host_is_refused_while_the_console_runs(site: Site, tmp_path: Path) -> None:
    before = site.submit("before", "echo done")
    wait_for(lambda: site.state(before) == "SUCCEEDED")
    first = site.hosts[0]
    file = tmp_path / "backup.tar.gz"
    first.manage("backup", str(file))
    since = site.submit("since", "echo done")
    done = subprocess.run(
        [sys.executable, "-m", "console", "restore", str(file)],
        cwd=first.directory,
        env={**first.environ, "CONSOLE_HOME": str(tmp_path / "other")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Nothing was restored. The database has sessions from" in done.stderr
    for host in site.hosts:
        assert host.host.address in done.stderr
    wait_for(lambda: site.state(since) == "SUCCEEDED")


def test_console_of_two_hosts_goes_on_after_database_and_broker_were_replaced(site: Site) -> None:
    long = site.submit("steady", COUNTS)
    wait_for(lambda: site.state(long) == "RUNNING")
    site.database.kill()
    site.broker.stop()
    site.broker.start()  # empty: it has no state
    site.database.start()
    wait_for(lambda: site.state(long) == "SUCCEEDED", 120)
    assert site.log(long) == WHOLE
    after = site.submit("after", "echo done")
    wait_for(lambda: site.state(after) == "SUCCEEDED")
    for host in site.hosts:
        wait_for(lambda host=host: site.log(after, host.base_url) == b"done\n")  # type: ignore[misc]
